package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/secret"
	"github.com/parlor-games/parlor/internal/players/games"
)

// devKeyFolder returns the folder in which dev remembers the server keys that it made in a store,
// or "" if the system has no place for such files. Its name is a digest, because the address of a
// store may contain a password.
func devKeyFolder(storeURL string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "parlor", "dev-server-keys", secret.Digest(storeURL)[:16])
}

// ensureServerKey makes a server key if the store is older than this process, because the first key
// was shown only once. It returns a function that revokes the new key. A killed process cannot
// revoke its key, and a game has at most 8, so the next process revokes the keys that the folder
// lists.
func (d domains) ensureServerKey(ctx context.Context, s *seedResult, folder string) (remove func(), err error) {
	if s.serverKey != "" {
		return func() {}, nil
	}
	remembered, forget := d.takeKeyFile(ctx, s.game.ID, folder)
	game, key, err := d.games.AddServerKey(ctx, operator, s.game.ID)
	if err != nil {
		forget()
		return nil, fmt.Errorf("make a server key of the game: %w", err)
	}
	s.serverKey = key
	keyID := games.ServerKeyID(key)
	if remembered != nil {
		_, _ = remembered.WriteString(keyID)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), devCleanupTimeout)
		defer cancel()
		if d.revokeKey(ctx, game.ID, keyID) {
			forget()
		}
	}, nil
}

const devCleanupTimeout = 2 * time.Second

// takeKeyFile revokes the keys of processes that have ended without doing so, and returns a new
// file for the id of a key. The file is locked as long as this process lives: that is how the next
// one knows. Without a folder, or a system with such locks, the file is nil and nothing is revoked.
func (d domains) takeKeyFile(ctx context.Context, gameID int64, folder string) (file *os.File, forget func()) {
	none := func() {}
	if folder == "" || os.MkdirAll(folder, 0o700) != nil {
		return nil, none
	}
	// One process at a time: a new file is not yet locked for a moment.
	gate, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, none
	}
	defer func() { _ = gate.Close() }()
	if lockFile(gate) != nil {
		return nil, none
	}
	names, _ := filepath.Glob(filepath.Join(folder, "key-*"))
	for _, name := range names {
		d.revokeForgottenKey(ctx, gameID, name)
	}
	file, err = os.CreateTemp(folder, "key-")
	if err != nil {
		return nil, none
	}
	forget = func() {
		_ = os.Remove(file.Name())
		_ = file.Close()
	}
	if lockFile(file) != nil {
		forget()
		return nil, none
	}
	return file, forget
}

// revokeForgottenKey revokes the key of a file whose process has ended, and removes the file.
func (d domains) revokeForgottenKey(ctx context.Context, gameID int64, name string) {
	file, err := os.Open(name)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	if lockFile(file) != nil {
		return // its process lives
	}
	keyID, err := os.ReadFile(name)
	if err == nil && (len(keyID) == 0 || d.revokeKey(ctx, gameID, string(keyID))) {
		_ = os.Remove(name)
	}
}

// revokeKey reports whether the game no longer has a key: it may have been revoked before.
func (d domains) revokeKey(ctx context.Context, gameID int64, keyID string) bool {
	_, err := d.games.RevokeServerKey(ctx, operator, gameID, keyID)
	return err == nil || errors.Is(err, apierror.InvalidRequest)
}
