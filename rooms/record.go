package rooms

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
)

// packed is the layout of a text that holds several values in a fixed order. Only the last value
// may contain the separator.
type packed struct {
	separator string
	names     []string
}

// The packed fields of a room's hash. The scripts read the values in this order; doc.go describes
// them.
var (
	roomSettings = packed{"|", []string{
		"room", "game", "token", "decimals", "entry", "max", "min", "friends", "visibility", "auto",
		"idle", "age", "match", "keep", "creator",
	}}
	roomState    = packed{"|", []string{"status", "host", "version", "position", "pot", "hostProfile"}}
	roomDocument = packed{"\t", append([]string{"id", "code", "creatorProfile"}, newRoomDocument.names...)}
	roomSeat     = packed{"|", []string{"user", "state", "ready", "since", "stake", "profile"}}

	// newRoomDocument is the part of roomDocument that is known before the script gives the room its
	// id.
	newRoomDocument = packed{"\t", []string{"settlement", "rakeBps", "payout", "tie", "metadata", "entryToken"}}
)

// join returns the values as one text. Each name must have a value.
func (p packed) join(values map[string]any) string {
	var b []byte
	for i, name := range p.names {
		value, ok := values[name]
		if !ok {
			panic("rooms: no value for " + name)
		}
		if i > 0 {
			b = append(b, p.separator...)
		}
		b = fmt.Append(b, value)
	}
	return string(b)
}

// split adds the values in a text to a map by their names.
func (p packed) split(text string, values map[string]string) error {
	last := len(p.names) - 1
	for i, name := range p.names[:last] {
		value, rest, found := strings.Cut(text, p.separator)
		if !found {
			return fmt.Errorf("%d values where %d must be (%s …)", i+1, len(p.names), p.names[0])
		}
		values[name], text = value, rest
	}
	values[p.names[last]] = text
	return nil
}

// encode returns the settings and the document of a new room as the scripts store them.
func (n *newRoom) encode(roomID string, creator int64) (settings, document string) {
	settings = roomSettings.join(map[string]any{
		"room": roomID, "game": n.game, "token": n.token.TokenID, "decimals": n.token.Decimals, "entry": int64(n.entry),
		"max": n.maxPlayers, "min": n.minPlayers, "friends": formatBool(n.friendsOnly), "visibility": n.visibility,
		"auto": formatBool(n.autoStart), "idle": n.idle.Milliseconds(), "age": n.age.Milliseconds(),
		"match": n.match.Milliseconds(), "keep": n.keep.Milliseconds(), "creator": creator,
	})
	document = newRoomDocument.join(map[string]any{
		"settlement": n.settlement, "rakeBps": n.rakeBps, "payout": joinInts(n.payoutBps), "tie": n.tie,
		"metadata": n.metadata, "entryToken": n.entryToken,
	})
	return settings, document
}

// encode returns the payouts as "<user>:<place>:<units>;" each.
func (l payoutList) encode() []byte {
	var b []byte
	for _, p := range l.payouts {
		b = fmt.Appendf(b, "%d:%d:%d;", p.UserID, p.Place, p.Amount)
	}
	return b
}

func joinInts[N int | int64](list []N) string {
	var b []byte
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Append(b, n)
	}
	return string(b)
}

func formatBool(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// decodeRoom returns the room of a hash, to which it adds the values of the packed fields. An empty
// hash is the zero Room.
func decodeRoom(hash map[string]string) (Room, error) {
	if len(hash) == 0 {
		return Room{}, nil
	}
	r, err := decodeFields(hash)
	if err != nil {
		return Room{}, fmt.Errorf("decode room %s: %w", hash["room"], err)
	}
	return r, nil
}

func decodeFields(hash map[string]string) (r Room, err error) {
	var bannedErr, seatsErr, payoutErr error
	r.banned, bannedErr = decodeBans(hash)
	r.Seats, seatsErr = decodeSeats(hash["seats"])
	if err := errors.Join(
		roomSettings.split(hash["set"], hash), roomState.split(hash["state"], hash), roomDocument.split(hash["doc"], hash),
		bannedErr, seatsErr,
	); err != nil {
		return Room{}, err
	}
	f := redisdb.NewFields("its fields", hash)
	r.ID, r.RoomID, r.Code, r.GameID = f.Int("id"), f.Text("room"), f.Text("code"), f.Int("game")
	r.TokenID, r.Decimals, r.Entry = f.Text("token"), int(f.Int("decimals")), wallet.Units(f.Int("entry"))
	r.Pot, r.Rake = wallet.Units(f.Int("pot")), wallet.Units(f.Int("rake"))
	r.MaxPlayers, r.MinPlayers = int(f.Int("max")), int(f.Int("min"))
	r.FriendsOnly, r.AutoStart = f.Text("friends") == "1", f.Text("auto") == "1"
	r.Visibility, r.Settlement, r.Tie = Visibility(f.Text("visibility")), f.Text("settlement"), Tie(f.Text("tie"))
	r.RakeBps = int(f.Int("rakeBps"))
	r.Status, r.HostID, r.CreatorID = Status(f.Text("status")), f.Int("host"), f.Int("creator")
	r.Version, r.Seq, r.Position = f.Int("version"), f.Int("seq"), f.Text("position")
	r.CreatedAt, r.StartedAt, r.FinishedAt = f.Time("created"), f.Time("started"), f.Time("finished")
	r.Reason, r.RematchID = f.Text("reason"), f.Text("rematch")
	r.creatorProfile, r.hostProfile = f.Text("creatorProfile"), f.Text("hostProfile")
	r.entryToken, r.metadata = f.Text("entryToken"), f.Text("metadata")
	r.placements, r.payouts, r.refunds = f.Text("results"), f.Text("payouts"), f.Text("refunds")
	r.PayoutBps, payoutErr = decodeInts(f.Text("payout"))
	return r, errors.Join(f.Err(), payoutErr)
}

func decodeInts(text string) ([]int, error) {
	v := redisdb.NewValues("a list of numbers", strings.Split(text, ","))
	list := make([]int, v.Len())
	for i := range list {
		list[i] = int(v.Int())
	}
	return list, v.Err()
}

// decodeBans returns the players of the fields "ban:<user>", nil when there are none.
func decodeBans(hash map[string]string) (map[int64]bool, error) {
	var users []string
	for field := range hash {
		if user, ok := strings.CutPrefix(field, "ban:"); ok {
			users = append(users, user)
		}
	}
	if users == nil {
		return nil, nil
	}
	banned := map[int64]bool{}
	v := redisdb.NewValues("the banned players", users)
	for v.Len() > 0 {
		banned[v.Int()] = true
	}
	return banned, v.Err()
}

// decodeSeats reads seats with tabs between them.
func decodeSeats(text string) ([]Seat, error) {
	if text == "" {
		return nil, nil
	}
	list := make([]Seat, 0, strings.Count(text, "\t")+1)
	values := make(map[string]string, len(roomSeat.names))
	for seat := range strings.SplitSeq(text, "\t") {
		if err := roomSeat.split(seat, values); err != nil {
			return nil, err
		}
		f := redisdb.NewFields("a seat", values)
		list = append(list, Seat{
			UserID: f.Int("user"), State: SeatState(f.Text("state")), Ready: f.Text("ready") == "1",
			JoinedAt: f.Time("since"), Stake: wallet.Units(f.Int("stake")), profile: f.Text("profile"),
		})
		if err := f.Err(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// decodeReply returns the hash in a script's reply: fields and values by turns with line breaks
// between them.
func decodeReply(text string) map[string]string {
	hash := make(map[string]string, 64)
	for text != "" {
		var field, value string
		field, text, _ = strings.Cut(text, "\n")
		value, text, _ = strings.Cut(text, "\n")
		hash[field] = value
	}
	return hash
}
