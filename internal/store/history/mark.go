package history

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// mark is how far the history was. It stands outside of what it describes.
type mark struct {
	Installation string           `json:"installation"`
	Epoch        int64            `json:"epoch"`
	At           time.Time        `json:"at"`
	Node         string           `json:"node"`
	Games        map[int64]tipDoc `json:"games"`
}

// tipDoc is the last entry of a ledger.
type tipDoc struct {
	Number int64  `json:"n"`
	Head   string `json:"head"` // "<ms>|<nonce>"
}

// label keeps a signature of a mark from being one of anything else that the keys sign.
const markLabel = "parlor history mark\x00"

func signMark(key []byte, document string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(markLabel + document))
	return hex.EncodeToString(mac.Sum(nil))
}

// encodeMark returns a mark as a line of JSON and a line with its signature.
func encodeMark(m mark, key []byte) (string, error) {
	document, err := wire.Marshal(m)
	if err != nil {
		return "", err
	}
	return string(document) + "\n" + signMark(key, string(document)) + "\n", nil
}

var errMarkSignature = errors.New("no signing key of this node has signed it")

func decodeMark(text string, signingKeys [][]byte) (mark, error) {
	document, signature, _ := strings.Cut(text, "\n")
	signature = strings.TrimSuffix(signature, "\n")
	for _, key := range signingKeys {
		if hmac.Equal([]byte(signMark(key, document)), []byte(signature)) {
			var m mark
			err := wire.Unmarshal([]byte(document), &m)
			return m, err
		}
	}
	return mark{}, errMarkSignature
}

// include takes over the later entries of another mark of the same epoch.
func (m *mark) include(other mark) {
	for id, tip := range other.Games {
		if tip.Number > m.Games[id].Number {
			m.Games[id] = tip
		}
	}
}

func (m mark) clone() mark {
	m.Games = maps.Clone(m.Games)
	return m
}

// markFiles are the marks in a folder. Several nodes may share a folder: each writes its own file
// and reads all files.
type markFiles struct {
	dir  string // "" for none
	name string // of this node's file
}

const markSuffix = ".mark"

// staleFile is after how long the file of a node that is gone is removed.
const staleFile = 24 * time.Hour

func newMarkFiles(dir string) markFiles {
	host, _ := os.Hostname()
	host = strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, host)
	return markFiles{dir, fmt.Sprintf("%s-%d%s", host, os.Getpid(), markSuffix)}
}

// read returns the texts of all marks by the names of their files.
func (f markFiles) read() (map[string]string, error) {
	texts := map[string]string{}
	if f.dir == "" {
		return texts, nil
	}
	names, err := filepath.Glob(filepath.Join(f.dir, "*"+markSuffix))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if err == nil {
			texts[filepath.Base(name)] = string(text)
		}
	}
	return texts, nil
}

// write replaces this node's file at once: a reader sees the old text or the new one, after a power
// cut too.
func (f markFiles) write(text string) error {
	if f.dir == "" {
		return nil
	}
	file, err := os.CreateTemp(f.dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(f.dir, f.name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	folder, err := os.Open(f.dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// removeStale removes the files of nodes that wrote none for a day. Their marks are in this node's.
func (f markFiles) removeStale() {
	names, _ := filepath.Glob(filepath.Join(f.dir, "*"+markSuffix))
	for _, name := range names {
		info, err := os.Stat(name)
		if err == nil && filepath.Base(name) != f.name && time.Since(info.ModTime()) > staleFile {
			_ = os.Remove(name)
		}
	}
}

// readAllMarks returns the marks of the folder and of the Cluster, and what could not be read.
func (s *Service) readAllMarks(ctx context.Context) (marks []mark, unreadable []string, err error) {
	texts, err := s.files.read()
	if err != nil {
		return nil, nil, fmt.Errorf("read the marks: %w", err)
	}
	inStore, err := s.store.readMarks(ctx)
	if err != nil {
		return nil, nil, err
	}
	for i, text := range inStore {
		texts[fmt.Sprintf("{%s}", markTags[i%len(markTags)])] = text
	}
	for name, text := range texts {
		m, err := decodeMark(text, *s.signingKeys.Load())
		if err != nil {
			unreadable = append(unreadable, name+": "+err.Error())
			continue
		}
		marks = append(marks, m)
	}
	return marks, unreadable, nil
}
