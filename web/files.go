package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Site is the files of one section of a node, as an http.Handler. Its paths start with the prefix
// of the section: "/docs/errors/room_full" is the file errors/room_full.html of dist/docs.
type Site struct {
	prefix   string
	files    map[string]*file // by path below the prefix: "", "errors/room_full", "assets/docs-1A2B3C4D.js"
	notFound *file            // the page of a 404, or nil
	policy   policy           // of most files
	open     bool             // other origins may load the files: the SDK
}

// file is a file in the encodings in which it can be sent.
type file struct {
	contentType  string
	cacheControl string
	identity     []byte // nil when only compressed forms are embedded
	gzip, brotli []byte // nil when compression gains nothing
	hash         string // of the content, the first part of every ETag
	policy       policy
}

// hashedName matches the names that the build gives to files whose content never changes.
var hashedName = regexp.MustCompile(`-[0-9A-Z]{8}\.[a-z0-9]+$`)

const (
	cacheForever    = "public, max-age=31536000, immutable"
	cacheRevalidate = "no-cache" // a page is asked for again and is mostly a 304
)

// newSite reads the files of a section. A file whose name ends in ".gz" or ".br" is the compressed
// form of the file without that ending, which need not be there.
func newSite(prefix string, files fs.FS, p policy) (*Site, error) {
	s := &Site{prefix: prefix, files: map[string]*file{}, policy: p}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		encoding := path.Ext(name)
		if encoding != ".gz" && encoding != ".br" {
			encoding = ""
		}
		f := s.fileOf(strings.TrimSuffix(name, encoding))
		switch encoding {
		case ".gz":
			f.gzip = content
		case ".br":
			f.brotli = content
		default:
			f.identity = content
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, f := range s.files {
		sum := sha256.Sum256(bytes.Join([][]byte{f.identity, f.gzip}, nil))
		f.hash = base64.RawURLEncoding.EncodeToString(sum[:12])
	}
	if page, ok := s.files["404"]; ok {
		s.notFound = page
		delete(s.files, "404")
	}
	return s, nil
}

// fileOf returns the entry of a file and makes it if it is not there.
func (s *Site) fileOf(name string) *file {
	key := strings.TrimSuffix(name, ".html")
	if key == "index" || strings.HasSuffix(key, "/index") {
		key = strings.TrimSuffix(strings.TrimSuffix(key, "index"), "/")
	}
	f, ok := s.files[key]
	if !ok {
		f = &file{contentType: typeOf(name), cacheControl: cacheRevalidate, policy: s.policy}
		if hashedName.MatchString(name) {
			f.cacheControl = cacheForever
		}
		s.files[key] = f
	}
	return f
}

// contentTypes are written down, because the types that the operating system knows differ.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".ts":   "text/plain; charset=utf-8",
	".json": "application/json",
	".map":  "application/json",
	".txt":  "text/plain; charset=utf-8",
	".svg":  "image/svg+xml",
	".png":  "image/png",
	".ico":  "image/x-icon",
	".tgz":  "application/gzip",
}

func typeOf(name string) string {
	if t, ok := contentTypes[path.Ext(name)]; ok {
		return t
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

// Has reports whether there is a file at a path, which starts with the prefix of the section.
func (s *Site) Has(urlPath string) bool {
	_, ok := s.find(urlPath)
	return ok
}

// find returns the file at a path. Files are looked up by name and never read from a disk, so a
// path with ".." names nothing.
func (s *Site) find(urlPath string) (*file, bool) {
	name, ok := strings.CutPrefix(urlPath, s.prefix)
	if !ok || name != "" && name[0] != '/' {
		return nil, false
	}
	f, ok := s.files[strings.TrimSuffix(strings.TrimPrefix(name, "/"), "/")]
	return f, ok
}

// ServeHTTP sends a file. An unknown path is 404, with the page of the section if it has one.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	f, status := s.notFound, http.StatusNotFound
	if found, ok := s.find(r.URL.Path); ok {
		f, status = found, http.StatusOK
	}
	if f == nil {
		s.policy.set(h, r)
		http.Error(w, "404 page not found", status)
		return
	}
	f.policy.set(h, r)
	if s.open {
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	body, encoding := f.body(acceptedEncodings(r.Header))
	etag := `"` + f.hash + encoding + `"`
	h.Set("Cache-Control", f.cacheControl)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Etag", etag)
	if status == http.StatusOK && matchesETag(r.Header.Values("If-None-Match"), f.hash) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if encoding != "" {
		h.Set("Content-Encoding", strings.TrimPrefix(encoding, "-"))
	}
	h.Set("Content-Type", f.contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// body returns the smallest form that the client accepts, and the end of its ETag: "-br", "-gzip"
// or "".
func (f *file) body(accepted map[string]bool) (body []byte, encoding string) {
	switch {
	case f.brotli != nil && accepted["br"]:
		return f.brotli, "-br"
	case f.gzip != nil && accepted["gzip"]:
		return f.gzip, "-gzip"
	case f.identity != nil:
		return f.identity, ""
	default:
		return decompress(f.gzip), ""
	}
}

// decompress returns what a client without any compression gets, which are few.
func decompress(compressed []byte) []byte {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		panic("web: an embedded file is not gzip: " + err.Error()) // a test reads all of them
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		panic("web: an embedded file is cut off: " + err.Error())
	}
	return content
}

// compress returns the gzip form of a file that was embedded without one.
func compress(content []byte) []byte {
	var b bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = writer.Write(content)                               // to memory
	_ = writer.Close()
	return b.Bytes()
}

// acceptedEncodings returns the encodings that a client accepts, by RFC 9110, 12.5.3. "*" is
// ignored: it is sent by no browser.
func acceptedEncodings(h http.Header) map[string]bool {
	accepted := map[string]bool{}
	for _, line := range h.Values("Accept-Encoding") {
		for item := range strings.SplitSeq(line, ",") {
			name, parameters, _ := strings.Cut(item, ";")
			weight, given := strings.CutPrefix(strings.ReplaceAll(parameters, " ", ""), "q=")
			refused := given && strings.Trim(weight, "0.") == ""
			accepted[strings.ToLower(strings.TrimSpace(name))] = !refused
		}
	}
	return accepted
}

// matchesETag reports whether a client has the content in any encoding: a stored form is as good
// as another.
func matchesETag(headers []string, hash string) bool {
	for _, line := range headers {
		for item := range strings.SplitSeq(line, ",") {
			item = strings.TrimPrefix(strings.TrimSpace(item), "W/")
			if item == "*" {
				return true
			}
			tag, quoted := strings.CutPrefix(item, `"`+hash)
			if quoted && (tag == `"` || tag == `-br"` || tag == `-gzip"`) {
				return true
			}
		}
	}
	return false
}
