package rooms

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/players/games"
	"github.com/parlor-games/parlor/internal/store/redisdb"
	"github.com/parlor-games/parlor/scripts"
)

// setState runs the script. Its room, also after version_conflict, has the state as it is now.
func (st *store) setState(
	ctx context.Context, c command, version int64, p statePatch, hostOnly bool,
) (scriptResult, error) {
	pairs := make([]any, 0, 2*len(p.names))
	for i, name := range p.names {
		pairs = append(pairs, name, p.values[i])
	}
	return st.run(ctx, scripts.RoomStateSet, st.newKeyList(c), scripts.RoomStateSetArgs{
		CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
		HostOnly: formatBool(hostOnly), ReadVersion: version, Patch: p.patchJSON, Deleted: strings.Join(p.deleted, ","),
		MaxBytes: maxStateBytes, MaxNames: maxStateNames,
	}.List(pairs...)...)
}

func (st *store) setTurn(
	ctx context.Context, c command, in TurnInput, timeout games.TurnTimeout,
) (scriptResult, error) {
	player, seconds := "", ""
	if in.UserID != nil {
		player, seconds = strconv.FormatInt(*in.UserID, 10), strconv.FormatInt(*in.Seconds, 10)
	}
	r, err := st.run(ctx, scripts.RoomTurnSet, st.newKeyList(c).addTurns(),
		scripts.RoomTurnSetArgs{
			CallArgs: st.callArgs(c), Publish: &st.db.PublishCommand, User: c.playerText(), CallerGame: c.gameID,
			RoomID: c.roomID, Player: player, Seconds: seconds, Timeout: string(timeout),
		}.List()...)
	st.timing.Changed(c.shard.GameID()) // freeRooms for a free shard
	return r, err
}

// The fields of a room's shared state: its head, and one for each name.
const (
	stateHeadField   = "state"
	stateFieldPrefix = "k:"
)

var (
	stateLayout = redisdb.PackedLayout{
		Name: "the head of a room's state", Separator: '|', Layout: scripts.RoomState,
	}
	turnLayout = redisdb.PackedLayout{Name: "the turn of a room", Separator: '|', Layout: scripts.RoomTurn}
)

// decodeState reads the shared state, its names in alphabetical order. It returns nil for a room
// without one.
func decodeState(hash redisdb.Hash) (*SharedState, error) {
	text, ok := hash.Get(stateHeadField)
	if !ok {
		return nil, nil
	}
	head := stateLayout.Split(text)
	shared := &SharedState{Version: head.Int("state_version")}
	var fields [][2]string
	for field, value := range hash.All {
		if name, ok := strings.CutPrefix(field, stateFieldPrefix); ok {
			fields = append(fields, [2]string{name, value})
		}
	}
	slices.SortFunc(fields, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	o := objectAppender{make([]byte, 0, head.Int("bytes")+2)}
	o.openBracket('{')
	for _, f := range fields {
		o.rawMember(f[0], f[1])
	}
	o.closeBracket('}')
	shared.ValueJSON = o.b
	return shared, head.Err()
}

// decodeTurn reads whose turn it is, nil when nobody has it.
func decodeTurn(hash redisdb.Hash) (*Turn, error) {
	text, ok := hash.Get("turn")
	if !ok {
		return nil, nil
	}
	turn := turnLayout.Split(text)
	t := &Turn{
		UserID: turn.Int("turn_user"), Deadline: turn.Time("deadline"),
		Length:   time.Duration(turn.Int("seconds")) * time.Second,
		forfeits: turn.Text("timeout") == string(games.TurnForfeits), deadlineMS: turn.Text("deadline"),
	}
	return t, turn.Err()
}
