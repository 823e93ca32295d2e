package rooms

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
	"github.com/redis/go-redis/v9"
)

// windowReply follows stale when the window of a room is over and has to be closed first.
const windowReply = "window"

// isWindowOver reports whether a report came after the end of the window, which nobody has closed.
func isWindowOver(r scriptResult) bool {
	return r.isStale() && slices.Equal(r.reply.Values, []string{windowReply})
}

// closeIfOver returns the result of a script. If the script found that a report window has ended,
// closeIfOver closes the window and returns stale with the room after that.
func (st *store) closeIfOver(ctx context.Context, c command, r scriptResult, err error) (scriptResult, error) {
	if err != nil || !isWindowOver(r) {
		return r, err
	}
	r, err = st.closeWindow(ctx, c, r.room)
	r.reply = redisdb.Reply{Status: scripts.Stale}
	return r, err
}

// hasWindow reports whether a window for reports runs in the room, or is over and not closed.
func (r *Room) hasWindow() bool { return r.Status == Started && !r.ReportUntil.IsZero() }

// windowCall returns the call that ends the window of a room as it was read. Any node may send it,
// more than once: the script compares the clock and the room's version.
func (st *store) windowCall(at location, room *Room) redisdb.ScriptCall {
	outcome, l := room.settleWindow()
	k := st.newKeyList(command{location: at, gameID: room.GameID})
	k.addIndexes(startedIndex, finishedIndex, disputedIndex).addDue()
	return redisdb.ScriptCall{
		Keys: k.addLedger().addPlayers(l.users).addOutbox(l.consumer).names,
		Args: scripts.RoomWindowCloseArgs{
			Publish: st.db.PublishCommand, Nonce: idempotency.NewNonce(), RoomID: at.roomID, Outcome: string(outcome),
			Placements: l.placements, Rake: int64(l.rake), ComputedFor: l.roomVersion,
			DisputeMS: st.disputeTimeout.Milliseconds(), EventsMS: eventsRetention.Milliseconds(),
			NodeMS: st.db.Clock.NowMS(),
		}.List(),
	}
}

// closeWindow ends the window of the command's room, which was read. The room of the result is the
// one after that; stale means that it was changed meanwhile. It returns store_unavailable while the
// clocks of store and node differ: nothing ends then.
func (st *store) closeWindow(ctx context.Context, c command, room *Room) (scriptResult, error) {
	call := st.windowCall(c.location, room)
	nonce, _ := call.Args[scripts.RoomWindowClose.NonceArg].(string)
	c.receipt, c.nonce = idempotency.Receipt{}, nonce
	r, err := st.runScript(ctx, scripts.RoomWindowClose, c, c.location, call.Keys, call.Args)
	if errors.Is(err, redisdb.ErrSkewed) {
		err = fmt.Errorf("close the window of a room: %w (%w)", apierror.StoreUnavailable, err)
	}
	if err == nil && r.room == nil {
		err = scriptError(r)
	}
	return r, err
}

// countDisputesLost returns how often a player has lost a dispute.
func (st *store) countDisputesLost(ctx context.Context, gameID, userID int64) (lost int64, err error) {
	var reads []*redis.StringCmd
	_, _ = st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, shard := range st.gameShards(gameID) {
			reads = append(reads, p.HGet(ctx, keys.DisputesLost(shard, gameID), strconv.FormatInt(userID, 10)))
		}
		return nil
	})
	for _, read := range reads {
		n, err := read.Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return 0, redisdb.WrapError("count the disputes that a player has lost", err)
		}
		lost += n
	}
	return lost, nil
}

// addDisputesLost adds to the reports of disputed rooms how often their players have lost a
// dispute. Only rooms that show their reports get it.
func (st *store) addDisputesLost(ctx context.Context, rooms ...*Room) error {
	users := map[int64][]string{} // by game
	for _, room := range rooms {
		if !room.showReports || room.Status != Disputed {
			continue
		}
		for _, report := range room.Reports {
			users[room.GameID] = append(users[room.GameID], strconv.FormatInt(report.UserID, 10))
		}
	}
	if len(users) == 0 {
		return nil
	}
	reads := map[int64][]*redis.SliceCmd{}
	_, err := st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for gameID, ids := range users {
			for _, shard := range st.gameShards(gameID) {
				reads[gameID] = append(reads[gameID], p.HMGet(ctx, keys.DisputesLost(shard, gameID), ids...))
			}
		}
		return nil
	})
	if err != nil {
		return redisdb.WrapError("read who has lost disputes", err)
	}
	lost := map[string]int64{} // a player has one game
	for gameID, ofShards := range reads {
		counted := map[string]bool{} // a player may have reported in two rooms
		for i, id := range users[gameID] {
			for _, read := range ofShards {
				text, isThere := read.Val()[i].(string)
				if n, err := strconv.ParseInt(text, 10, 64); err == nil && isThere && !counted[id] {
					lost[id] += n
				}
			}
			counted[id] = true
		}
	}
	for _, room := range rooms {
		for i := range room.Reports {
			room.Reports[i].DisputesLost = lost[strconv.FormatInt(room.Reports[i].UserID, 10)]
		}
	}
	return nil
}
