package rooms

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/store/idempotency"
	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

// matchRoomID is Service.MatchRoomID. The shard and the random bits of the id are those of a keyed
// hash, so that nobody can find out where a match will be.
func (st *store) matchRoomID(ctx context.Context, in MatchInput) (string, error) {
	if st.keyedHash == nil {
		return "", errors.New("find the room of a match: there is no Options.KeyedHash")
	}
	sum, err := st.keyedHash(ctx, "match", strconv.FormatInt(in.GameID, 10)+"."+in.consumer())
	if err != nil {
		return "", err
	}
	shard := keys.FreeShard(int(binary.BigEndian.Uint64(sum[8:16]) % uint64(st.freeShardCount)))
	random := [8]byte(sum[:8])
	if in.HasFeed != nil {
		random = keys.WithFeedBit(random, *in.HasFeed)
	}
	return keys.RoomIDOf(shard, in.RoundStart, random), nil
}

// openMatch opens the room of a match. Stale means that the code was taken.
func (st *store) openMatch(
	ctx context.Context, in MatchInput, n roomDraft, profiles []string,
) (scriptResult, error) {
	roomID, err := st.matchRoomID(ctx, in)
	if err != nil {
		return scriptResult{}, err
	}
	at, err := st.locate(roomID)
	if err != nil {
		return scriptResult{}, err
	}
	tournament := principal.Caller{Role: principal.Server, GameID: in.GameID}
	c := command{at, tournament, in.GameID, idempotency.Receipt{}, idempotency.NewNonce()}
	code := newCode(c.shard.Number(), st.freeShardCount)
	k := st.newKeyList(c).add(keys.RoomCode(c.shard, code), keys.RoomCounter(c.shard)).addDue()
	k.addIndexes(allIndex, createdIndex).add(keys.FreeRooms(c.shard)).addPlayerRooms(in.Players)
	settings, document := n.encode(st.db.Layout(), 0)
	return st.runScript(ctx, scripts.RoomOpenMatch, c, c.location, k.names, scripts.RoomOpenMatchArgs{
		Publish: st.db.PublishCommand, Nonce: c.nonce, RoomID: c.roomID, Users: joinInts(in.Players),
		IDStep: st.freeShardCount + 1, IDOffset: c.shard.Number(), Code: code, Settings: settings, Document: document,
		Deadline: in.Deadline.UnixMilli(), Stakes: n.stakes,
		DisputeMS: cmp.Or(in.Dispute, st.disputeTimeout).Milliseconds(),
	}.List(redisdb.Args(profiles)...))
}

// closeMatch cancels a match that has not started at its deadline. Stale means that its seats have
// changed.
func (st *store) closeMatch(ctx context.Context, c command, users []int64) (scriptResult, error) {
	k := st.newKeyList(c).addIndexes(openIndex, createdIndex, cancelledIndex).addDue()
	k.add(keys.RoomOutbox(c.shard)).addPlayerRooms(users)
	return st.runScript(ctx, scripts.RoomCloseMatch, c, c.location, k.names, scripts.RoomCloseMatchArgs{
		Publish: st.db.PublishCommand, Nonce: c.nonce, CallerGame: c.gameID, RoomID: c.roomID, Users: joinInts(users),
		EventsMS: eventsRetention.Milliseconds(), NodeMS: st.db.Clock.NowMS(),
	}.List())
}
