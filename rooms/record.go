package rooms

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parlor-games/parlor/internal/redisdb"
	"github.com/parlor-games/parlor/internal/wallet"
)

// The packed fields of a room's hash. The scripts read the values in this order; doc.go describes
// them.
var (
	settingsLayout = redisdb.PackedLayout{Name: "the settings of a room", Separator: "|", Names: []string{
		"room", "game", "token", "decimals", "entry", "max", "min", "friends", "visibility", "auto",
		"idle", "age", "match", "keep", "creator",
	}}
	stateLayout = redisdb.PackedLayout{Name: "the state of a room", Separator: "|", Names: []string{
		"status", "host", "version", "position", "pot", "hostProfile",
	}}
	documentLayout = redisdb.PackedLayout{Name: "the document of a room", Separator: "\t", Names: append(
		[]string{"id", "code", "creatorProfile"}, draftDocumentLayout.Names...,
	)}
	seatLayout = redisdb.PackedLayout{Name: "a seat of a room", Separator: "|", Names: []string{
		"user", "state", "ready", "since", "stake", "profile",
	}}

	// draftDocumentLayout is the part of roomDocument that is known before the script gives the room
	// its id.
	draftDocumentLayout = redisdb.PackedLayout{Name: "the document of a new room", Separator: "\t", Names: []string{
		"settlement", "rakeBps", "payout", "tie", "metadata", "entryToken",
	}}
)

// encode returns the settings and the document of a new room as the scripts store them.
func (n *roomDraft) encode(roomID string, creator int64) (settings, document string) {
	settings = settingsLayout.Join(map[string]any{
		"room": roomID, "game": n.gameID, "token": n.token.Code, "decimals": n.token.Decimals, "entry": int64(n.entry),
		"max": n.maxPlayers, "min": n.minPlayers, "friends": formatBool(n.friendsOnly), "visibility": n.visibility,
		"auto": formatBool(n.autoStart), "idle": n.idleTimeout.Milliseconds(), "age": n.maxAge.Milliseconds(),
		"match": n.matchTimeout.Milliseconds(), "keep": n.retention.Milliseconds(), "creator": creator,
	})
	document = draftDocumentLayout.Join(map[string]any{
		"settlement": n.settledBy, "rakeBps": n.rakeBps, "payout": joinInts(n.payoutBps), "tie": n.tie,
		"metadata": n.metadataJSON, "entryToken": n.entryTokenJSON,
	})
	return settings, document
}

// encodePayouts returns the payouts as "<user>:<place>:<units>;" each.
func (l settlement) encodePayouts() []byte {
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

// decodeRoom returns the room of a hash. An empty hash is the zero Room.
func decodeRoom(hash map[string]string) (Room, error) {
	if len(hash) == 0 {
		return Room{}, nil
	}
	var r Room
	err := errors.Join(
		r.decodeSettings(hash["set"]), r.decodeState(hash["state"]), r.decodeDocument(hash["doc"]),
		r.decodeSeats(hash["seats"]), r.decodeBans(hash), r.decodeFields(hash),
	)
	if err != nil {
		return Room{}, fmt.Errorf("room %s: %w", r.RoomID, err)
	}
	return r, nil
}

func (r *Room) decodeSettings(text string) error {
	settings := settingsLayout.Split(text)
	r.RoomID, r.GameID, r.CreatorID = settings.Text("room"), settings.Int("game"), settings.Int("creator")
	r.TokenCode, r.TokenDecimals = settings.Text("token"), int(settings.Int("decimals"))
	r.Entry = wallet.Units(settings.Int("entry"))
	r.MaxPlayers, r.MinPlayers = int(settings.Int("max")), int(settings.Int("min"))
	r.FriendsOnly, r.AutoStart = settings.Bool("friends"), settings.Bool("auto")
	r.Visibility = Visibility(settings.Text("visibility"))
	return settings.Err()
}

func (r *Room) decodeState(text string) error {
	state := stateLayout.Split(text)
	r.Status, r.HostID, r.hostProfileJSON = Status(state.Text("status")), state.Int("host"), state.Text("hostProfile")
	r.Version, r.Position = state.Int("version"), state.Text("position")
	r.Pot = wallet.Units(state.Int("pot"))
	return state.Err()
}

func (r *Room) decodeDocument(text string) (err error) {
	document := documentLayout.Split(text)
	r.ID, r.Code, r.creatorProfileJSON = document.Int("id"), document.Text("code"), document.Text("creatorProfile")
	r.SettledBy, r.Tie = document.Text("settlement"), Tie(document.Text("tie"))
	r.RakeBps = int(document.Int("rakeBps"))
	r.PayoutBps, err = decodeInts(document.Text("payout"))
	r.metadataJSON, r.entryTokenJSON = document.Text("metadata"), document.Text("entryToken")
	return errors.Join(document.Err(), err)
}

// decodeFields reads the fields that are not packed.
func (r *Room) decodeFields(hash map[string]string) error {
	f := redisdb.NewFields("the fields of a room", hash)
	r.Seq, r.Rake = f.Int("seq"), wallet.Units(f.Int("rake"))
	r.CreatedAt, r.StartedAt, r.FinishedAt = f.Time("created"), f.Time("started"), f.Time("finished")
	r.CancelReason, r.RematchID = f.Text("reason"), f.Text("rematch")
	r.placementsJSON, r.payoutsJSON, r.refundsJSON = f.Text("results"), f.Text("payouts"), f.Text("refunds")
	return f.Err()
}

// decodeSeats reads seats with tabs between them.
func (r *Room) decodeSeats(text string) error {
	if text == "" {
		return nil
	}
	r.Seats = make([]Seat, 0, strings.Count(text, "\t")+1)
	for packed := range strings.SplitSeq(text, "\t") {
		seat := seatLayout.Split(packed)
		r.Seats = append(r.Seats, Seat{
			UserID: seat.Int("user"), State: SeatState(seat.Text("state")), Ready: seat.Bool("ready"),
			JoinedAt: seat.Time("since"), Stake: wallet.Units(seat.Int("stake")), profileJSON: seat.Text("profile"),
		})
		if err := seat.Err(); err != nil {
			return err
		}
	}
	return nil
}

// decodeBans reads the players of the fields "ban:<user>".
func (r *Room) decodeBans(hash map[string]string) error {
	for field := range hash {
		user, ok := strings.CutPrefix(field, "ban:")
		if !ok {
			continue
		}
		if r.bannedUsers == nil {
			r.bannedUsers = map[int64]bool{}
		}
		v := redisdb.NewValues("a banned player", []string{user})
		r.bannedUsers[v.NextInt()] = true
		if err := v.Err(); err != nil {
			return err
		}
	}
	return nil
}

func decodeInts(text string) ([]int, error) {
	v := redisdb.NewValues("a list of numbers", strings.Split(text, ","))
	list := make([]int, v.Remaining())
	for i := range list {
		list[i] = int(v.NextInt())
	}
	return list, v.Err()
}

// decodeHashReply returns the hash in a script's reply: field, value, field, value …, separated by
// line breaks.
func decodeHashReply(text string) map[string]string {
	hash := make(map[string]string, 16)
	for text != "" {
		var field, value string
		field, text, _ = strings.Cut(text, "\n")
		value, text, _ = strings.Cut(text, "\n")
		hash[field] = value
	}
	return hash
}
