package archive

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// ErrNotFound is returned for an object that does not exist.
var ErrNotFound = errors.New("the archive has no such object")

// storage is a place for objects. Both of them, files and S3, pass the same tests.
type storage interface {
	// put stores an object under a name, whole or not at all. When it returns nil the object is
	// durable.
	put(ctx context.Context, name string, data []byte) error
	// get returns an object. It returns ErrNotFound.
	get(ctx context.Context, name string) ([]byte, error)
	// list calls visit with the names that start with a prefix, in their order. The prefix is a
	// folder: it ends in "/", or is "".
	list(ctx context.Context, prefix string, visit func(name string) error) error
	// remove removes an object. It is no error when there is none.
	remove(ctx context.Context, name string) error
	// check reports whether the place can be reached and read.
	check(ctx context.Context) error
}

// S3Options are the options that the address of a bucket does not contain. The credentials are
// those of the AWS tools: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the role of the machine.
type S3Options struct {
	Endpoint string // "https://host:port"; "" is AWS
	Region   string // "" lets the server say
}

// Open returns the archive at "file:///folder" or "s3://bucket/prefix". It does not reach out for
// it; Check does.
func Open(address string, o S3Options) (*Archive, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the archive's address cannot be parsed")
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "":
		return newArchive(files{u.Path}, DefaultSizes), nil
	case u.Scheme == "s3" && u.Host != "" && u.RawQuery == "" && u.User == nil:
		s, err := openS3(u.Host, strings.Trim(u.Path, "/"), o)
		if err != nil {
			return nil, fmt.Errorf("s3:// address: %w", err)
		}
		return newArchive(s, DefaultSizes), nil
	default:
		return nil, errors.New("the archive's address must look like file:///folder or s3://bucket/prefix")
	}
}
