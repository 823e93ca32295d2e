package servers

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/store/keys"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/redis/go-redis/v9"
)

// keyLifetime is for how long the leases of a game stay after the last renewal of one.
const keyLifetime = 10 * time.Minute

// maxRoomsInCommand bounds the rooms of one command.
const maxRoomsInCommand = 1_000

// Server is a connection of a game's server, as its lease describes it.
type Server struct {
	ConnectionID string
	Channel      string // of its node
	connectedMS  int64
	share        Share
	expiresMS    int64
	rooms        int // to which it listens beside its share
}

// lease returns the lease as it is stored.
func (s *Server) lease() string {
	var b strings.Builder
	b.WriteString(s.Channel)
	for _, n := range []int64{s.connectedMS, int64(s.share.Of), int64(s.share.Index), s.expiresMS, int64(s.rooms)} {
		b.WriteByte('|')
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

// parseLease returns the server of a stored lease. A newer release may have added values.
func parseLease(connectionID, text string) (s Server, ok bool) {
	values := strings.Split(text, "|")
	if len(values) < 6 {
		return s, false
	}
	var n [5]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(values[i+1], 10, 64); err != nil {
			return s, false
		}
	}
	return Server{
		ConnectionID: connectionID, Channel: values[0], connectedMS: n[0], share: Share{Of: int(n[1]), Index: int(n[2])},
		expiresMS: n[3], rooms: int(n[4]),
	}, true
}

type store struct{ db *redisdb.DB }

// newChannel returns a channel that no other node has.
func newChannel() string { return keys.NodeChannel(rand.Text()) }

// write is what is stored of one connection.
type write struct {
	gameID       int64
	server       Server
	gone         bool     // the connection listens to nothing any more
	reset        bool     // the rooms that the store has are dropped first
	added, ended []string // rooms
}

// save stores what changed, in one round trip. It returns the connections of which the store has
// other rooms than it should.
func (st store) save(ctx context.Context, writes []write, lasts time.Duration) (differ []string, err error) {
	counts := make([]*redis.IntCmd, len(writes))
	_, err = st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range writes {
			counts[i] = writes[i].queue(ctx, p, lasts)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("store the leases of servers", err)
	}
	for i, count := range counts {
		if count != nil && count.Val() != int64(writes[i].server.rooms) {
			differ = append(differ, writes[i].server.ConnectionID)
		}
	}
	return differ, nil
}

// queue queues the commands, and returns the one that counts the rooms; nil for none.
func (w *write) queue(ctx context.Context, p redis.Pipeliner, lasts time.Duration) (count *redis.IntCmd) {
	leases, rooms := keys.GameServers(w.gameID), keys.GameServerRooms(w.gameID, w.server.ConnectionID)
	if w.gone {
		p.HDel(ctx, leases, w.server.ConnectionID)
		p.Del(ctx, rooms)
		return nil
	}
	if w.reset {
		p.Del(ctx, rooms)
	}
	for part := range slices.Chunk(w.ended, maxRoomsInCommand) {
		p.SRem(ctx, rooms, part)
	}
	for part := range slices.Chunk(w.added, maxRoomsInCommand) {
		p.SAdd(ctx, rooms, part)
	}
	if w.server.rooms > 0 {
		count = p.SCard(ctx, rooms)
		p.PExpire(ctx, rooms, lasts)
	}
	p.HSet(ctx, leases, w.server.ConnectionID, w.server.lease())
	p.PExpire(ctx, leases, keyLifetime)
	return count
}

// list returns the servers of a game whose lease is not over, the one that was connected first
// before all others.
func (st store) list(ctx context.Context, gameID, nowMS int64) ([]Server, error) {
	fields, err := st.db.AutoPipelined.HGetAll(ctx, keys.GameServers(gameID)).Result()
	if err != nil {
		return nil, redisdb.WrapError("read the servers of a game", err)
	}
	var list []Server
	for pair := range slices.Chunk(fields, 2) {
		if s, ok := parseLease(pair[0], pair[1]); ok && s.expiresMS > nowMS {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Server) int {
		if a.connectedMS != b.connectedMS {
			return int(a.connectedMS - b.connectedMS)
		}
		return strings.Compare(a.ConnectionID, b.ConnectionID)
	})
	return list, nil
}

// forget removes the leases of a game that were over at a time.
func (st store) forget(ctx context.Context, gameID, atMS int64) error {
	fields, err := st.db.Client.HGetAll(ctx, keys.GameServers(gameID)).Result()
	if err != nil {
		return redisdb.WrapError("read the servers of a game", err)
	}
	var over []string
	for connectionID, text := range fields {
		if s, ok := parseLease(connectionID, text); ok && s.expiresMS < atMS {
			over = append(over, connectionID)
		}
	}
	if len(over) == 0 {
		return nil
	}
	return redisdb.WrapError("remove old leases", st.db.Client.HDel(ctx, keys.GameServers(gameID), over...).Err())
}

// listenToRoom reports for each connection whether a room is among its rooms.
func (st store) listenToRoom(
	ctx context.Context, gameID int64, connectionIDs []string, roomID string,
) ([]bool, error) {
	reads := make([]*redis.BoolCmd, len(connectionIDs))
	_, err := st.db.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range connectionIDs {
			reads[i] = p.SIsMember(ctx, keys.GameServerRooms(gameID, id), roomID)
		}
		return nil
	})
	if err != nil {
		return nil, redisdb.WrapError("read the rooms of servers", err)
	}
	listen := make([]bool, len(reads))
	for i, read := range reads {
		listen[i] = read.Val()
	}
	return listen, nil
}
