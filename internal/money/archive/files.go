package archive

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// files is a folder that all nodes share.
type files struct{ dir string }

func (f files) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// temporaryPrefix starts the names of files that are being written. A crash may leave one behind.
const temporaryPrefix = ".writing-"

func (f files) put(_ context.Context, name string, data []byte) error {
	path := f.path(name)
	if err := f.makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), temporaryPrefix)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// makeFolder makes a folder and those above it, and makes each of them durable.
func (f files) makeFolder(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if path == filepath.Clean(f.dir) { // the operator makes it: a disk that is not mounted must not be filled
		return errors.New("the folder " + path + " does not exist")
	}
	if err := f.makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (f files) get(_ context.Context, name string) ([]byte, error) {
	data, err := os.ReadFile(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		if _, dirErr := os.Stat(f.dir); dirErr != nil {
			return nil, dirErr // a disk that is not mounted is no empty archive
		}
		return nil, ErrNotFound
	}
	return data, err
}

func (f files) list(ctx context.Context, prefix string, visit func(name string) error) error {
	err := filepath.WalkDir(f.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if entry.IsDir() || strings.HasPrefix(entry.Name(), temporaryPrefix) {
			return nil
		}
		name, err := filepath.Rel(f.dir, path)
		if err != nil {
			return err
		}
		return visit(filepath.ToSlash(name))
	})
	if errors.Is(err, fs.ErrNotExist) {
		_, err = os.Stat(f.dir)
	}
	return err
}

func (f files) remove(_ context.Context, name string) error {
	err := os.Remove(f.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f files) check(context.Context) error {
	info, err := os.Stat(f.dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New(f.dir + " is no folder")
	}
	file, err := os.CreateTemp(f.dir, temporaryPrefix)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
