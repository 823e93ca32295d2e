//go:build linux

package drill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/internal/store/redisdb/redistest"
	"github.com/parlor-games/parlor/tests/books"
	"github.com/parlor-games/parlor/tests/testkit"
)

// effect names what a call leaves in the ledger, and an entry what left it: both have the same name
// for the same call.
func effectOf(call acknowledged) string {
	wallet := keys.WalletAccount(strconv.FormatInt(call.user, 10))
	switch call.kind {
	case "sign-in":
		return "grant " + call.ref
	case "create", "join":
		return "entry " + call.ref + " " + wallet
	case "purchase", "finish", "credit":
		return call.kind + " " + call.ref
	}
	return "" // nothing
}

// effectOfEntry is effectOf for entry n of a ledger.
func effectOfEntry(e books.Entry, n int64) string {
	wallet := ""
	for account := range e.Postings {
		if kind, _ := keys.ParseAccount(account); kind == keys.AccountWallet {
			wallet = account
		}
	}
	_, owner := keys.ParseAccount(wallet)
	_, isRoom := keys.RoomShard(e.Ref)
	switch {
	case e.Reason == "purchase":
		return fmt.Sprint("purchase ", n)
	case e.Reason == "grant":
		return "grant " + owner
	case e.Reason == "entry":
		return "entry " + e.Ref + " " + wallet
	case isRoom:
		return "finish " + e.Ref
	}
	return "credit " + e.Reason
}

// findGone returns the acknowledged calls whose effect is not in the store.
func (in *installation) findGone(b books.Books) (gone []acknowledged) {
	in.t.Helper()
	effects := map[string]bool{}
	for i, e := range b.Entries {
		effects[effectOfEntry(e, b.Dropped+int64(i)+1)] = true
	}
	saved := map[int64]acknowledged{} // the newest of each player
	for _, call := range in.load.acked {
		effect := effectOf(call)
		switch {
		case call.kind == "save":
			saved[call.user] = call
		case call.kind == "start":
			room, known := b.Rooms[call.ref]
			if !known || room.Status == "CREATED" {
				gone = append(gone, call)
			}
		case effect != "" && !effects[effect]:
			gone = append(gone, call)
		}
	}
	for _, call := range saved {
		acknowledged, _ := strconv.ParseInt(call.ref, 10, 64)
		if stored := in.savedVersion(call); stored < acknowledged {
			in.t.Logf("player %d has version %d of a save; %d was acknowledged", call.user, stored, acknowledged)
			gone = append(gone, call)
		}
	}
	return gone
}

// savedVersion returns the version of a player's save.
func (in *installation) savedVersion(call acknowledged) (version int64) {
	s := &saver{load: in.setup, source: "127.0.0.1", player: member{call.user, call.bearer}}
	_ = redistest.Poll(lastLimit, func() error {
		if err := s.connect(false); err != nil {
			return err
		}
		defer s.close()
		load := map[string]any{"id": "1", "type": "load", "data": map[string]any{"slot": "main"}}
		if err := s.conn.WriteJSON(load); err != nil {
			return err
		}
		m, err := s.reply("1")
		version = m.Data.Version
		return err
	})
	return version
}

// keepLost starts a server with a copy of what a primary had that is dead, so that what the store
// has lost can be counted.
func (in *installation) keepLost(primary *redistest.Server) {
	in.t.Helper()
	copied, err := os.MkdirTemp("", "parlor-redis-")
	if err == nil {
		err = os.CopyFS(filepath.Join(copied, "appendonlydir"), os.DirFS(filepath.Join(primary.Dir, "appendonlydir")))
	}
	if err == nil {
		in.lostCopy, err = redistest.Start("--appendonly", "yes", "--appendfsync", "no", "--dir", copied)
	}
	testkit.Check(in.t, err, "keep what %s had", primary.Addr)
	in.t.Cleanup(func() { in.lostCopy.Remove(); _ = os.RemoveAll(copied) })
}

// compareLedgers counts the entries that the store has lost, and those of them whose calls had been
// acknowledged.
func (in *installation) compareLedgers(b books.Books, r *result) {
	in.t.Helper()
	if in.lostCopy == nil {
		return
	}
	db := testkit.Must(redisdb.Open(in.lostCopy.URL()))(in.t)
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(in.t.Context(), time.Minute)
	defer cancel()
	old := testkit.Must(books.ReadLarge(ctx, db, in.game))(in.t, "read what the lost primary had")
	present := map[string]bool{}
	for _, e := range b.Entries {
		present[e.Nonce] = true
	}
	acknowledged := map[string]bool{}
	for _, call := range in.load.acked {
		if call.at.Before(in.back) {
			acknowledged[effectOf(call)] = true
		}
	}
	for i, e := range old.Entries {
		if present[e.Nonce] {
			continue
		}
		r.missing++
		if acknowledged[effectOfEntry(e, old.Dropped+int64(i)+1)] {
			r.missingAcknowledged++
		}
	}
}

// primary returns the server that has the money of the game.
func (in *installation) primary() *redistest.Server {
	in.t.Helper()
	var found *redistest.Server
	in.wait("the money has a primary", func() bool {
		for _, s := range in.store.Servers {
			ctx, cancel := context.WithTimeout(in.t.Context(), time.Second)
			n, err := in.store.Reader(s).Exists(ctx, keys.Ledger(in.game)).Result() // MOVED on a master of other slots
			cancel()
			if err == nil && n == 1 && in.isPrimary(s) {
				found = s
			}
		}
		return found != nil
	})
	return found
}

func (in *installation) isPrimary(s *redistest.Server) bool {
	ctx, cancel := context.WithTimeout(in.t.Context(), time.Second)
	defer cancel()
	role, err := in.store.Reader(s).Do(ctx, "ROLE").Slice()
	return err == nil && len(role) > 0 && role[0] == "master"
}

// failOver cuts the replication of the primary that has the money in silence, kills it after a
// time, and waits until a replica took its place. The old primary comes back later.
func (in *installation) failOver(behind, backAfter time.Duration) {
	in.t.Helper()
	old := in.primary()
	others := slices.DeleteFunc(slices.Clone(in.store.Servers), func(s *redistest.Server) bool {
		return s == old || in.isPrimary(s)
	})
	link := in.store.Link(old)
	in.used(50)
	in.load.begin()
	link.Cut()
	in.lasts(behind)
	old.Kill()
	in.changed = time.Now()
	in.wait("a replica takes the place of the primary", func() bool {
		return slices.ContainsFunc(others, in.isPrimary)
	})
	in.back = time.Now()
	in.keepLost(old)
	link.Mend()
	in.lasts(max(0, backAfter-time.Since(in.changed)))
	testkit.Check(in.t, old.Restart())
}
