package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The kinds of objects.
const (
	kindLedger     = "ledger"
	kindCheckpoint = "checkpoint"
	kindLines      = "lines"
)

// object is what one object holds.
type object struct {
	kind        string
	gameID      int64
	userID      int64    // of lines, else 0
	first, last int64    // numbers of its entries or lines; of a checkpoint, of those that it sums up
	previous    string   // sum of the segment before; of a checkpoint, of the one that it ends with
	totals      []string // "<token> <total> <units>" after the last entry of a segment, sorted
	texts       []string // entries, lines or balances
	sum         string   // SHA-256 of the object in hexadecimal, known once it was encoded or decoded
}

const (
	magic     = "parlor-archive 1"
	sumPrefix = "sha256 "
)

var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(4*maxObjectBytes))
)

// name returns the name of the object.
func (o object) name() string {
	if o.kind == kindCheckpoint {
		return nameOf(o.gameID, o.kind, 0, o.last)
	}
	return nameOf(o.gameID, o.kind, o.userID, o.first)
}

// nameOf returns the name of an object. Names of a folder sort by number.
func nameOf(gameID int64, kind string, userID, number int64) string {
	folder := folderOf(gameID, kind)
	if kind == kindLines {
		folder += strconv.FormatInt(userID, 10) + "/"
	}
	return folder + fmt.Sprintf("%015d", number)
}

// folderOf returns the folder of a game's objects of a kind.
func folderOf(gameID int64, kind string) string { return fmt.Sprintf("game-%d/%s/", gameID, kind) }

// encode returns the object compressed and sets its sum. No text may have a line break.
func (o *object) encode() ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\nkind %s\ngame %d\n", magic, o.kind, o.gameID)
	if o.kind == kindLines {
		fmt.Fprintf(&b, "user %d\n", o.userID)
	}
	fmt.Fprintf(&b, "first %d\nlast %d\n", o.first, o.last)
	if o.kind != kindLines {
		fmt.Fprintf(&b, "previous %s\n", o.previous)
	}
	for _, total := range o.totals {
		fmt.Fprintf(&b, "total %s\n", total)
	}
	b.WriteByte('\n')
	for _, text := range o.texts {
		if strings.ContainsRune(text, '\n') {
			return nil, fmt.Errorf("%s: %q has a line break", o.name(), text)
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	digest := sha256.Sum256(b.Bytes())
	o.sum = hex.EncodeToString(digest[:])
	b.WriteString(sumPrefix + o.sum + "\n")
	return encoder.EncodeAll(b.Bytes(), make([]byte, 0, b.Len()/3)), nil
}

// ErrDamaged is part of every error about an object that is not as it was written, and about a
// chain of segments that is broken.
var ErrDamaged = errors.New("the object is damaged")

// decode returns what an object holds, after it has compared its sum.
func decode(data []byte) (object, error) {
	plain, err := decoder.DecodeAll(data, nil)
	if err != nil {
		return object{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	end := bytes.LastIndex(plain, []byte("\n"+sumPrefix)) + 1
	digest := sha256.Sum256(plain[:end])
	o := object{sum: hex.EncodeToString(digest[:])}
	if end == 0 || string(plain[end:]) != sumPrefix+o.sum+"\n" {
		return object{}, fmt.Errorf("%w: its SHA-256 is another one", ErrDamaged)
	}
	header, body, ok := strings.Cut(string(plain[:end]), "\n\n")
	if !ok {
		return object{}, fmt.Errorf("%w: it has no header", ErrDamaged)
	}
	if err := o.decodeHeader(strings.Split(header, "\n")); err != nil {
		return object{}, err
	}
	if body != "" {
		o.texts = strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	}
	if o.kind != kindCheckpoint && int64(len(o.texts)) != o.last-o.first+1 {
		return object{}, fmt.Errorf("%w: %d texts", ErrDamaged, len(o.texts))
	}
	return o, nil
}

func (o *object) decodeHeader(lines []string) error {
	if lines[0] != magic {
		return fmt.Errorf("the object starts with %q: another version of Parlor wrote it", lines[0])
	}
	for _, line := range lines[1:] {
		field, value, _ := strings.Cut(line, " ")
		var err error
		switch field {
		case "kind":
			o.kind = value
		case "game":
			o.gameID, err = strconv.ParseInt(value, 10, 64)
		case "user":
			o.userID, err = strconv.ParseInt(value, 10, 64)
		case "first":
			o.first, err = strconv.ParseInt(value, 10, 64)
		case "last":
			o.last, err = strconv.ParseInt(value, 10, 64)
		case "previous":
			o.previous = value
		case "total":
			o.totals = append(o.totals, value)
		}
		if err != nil {
			return fmt.Errorf("%w: %q", ErrDamaged, line)
		}
	}
	return nil
}

// sameAs reports whether two objects hold the same.
func (o object) sameAs(other object) bool {
	return o.sum == other.sum && slices.Equal(o.texts, other.texts)
}
