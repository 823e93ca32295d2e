package rooms

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/money/wallet"
	"github.com/parlor-games/parlor/internal/store/events"
	"github.com/parlor-games/parlor/internal/store/redisdb"
)

// The prefixes of the fields that a room has for each seat, each ban and each report; the user id
// follows.
const (
	seatFieldPrefix     = "s"
	banFieldPrefix      = "b"
	reportFieldPrefix   = "r"
	presenceFieldPrefix = "p"
)

// encode returns the settings and the document of a new room as they are stored while the store has
// a layout.
func (n *roomDraft) encode(storeLayout int, creator int64) (settings, document string) {
	number, text := redisdb.PackedInt, redisdb.PackedText
	settings = settingsLayout.Join(
		storeLayout,
		number("entry", int64(n.entry)), text("token", n.token.Code), number("decimals", int64(n.token.Decimals)),
		number("max_players", int64(n.maxPlayers)),
		number("game", n.gameID), number("creator", creator), text("visibility", string(n.visibility)),
		text("friends_only", formatBool(n.friendsOnly)), text("auto_start", formatBool(n.autoStart)),
		number("min_players", int64(n.minPlayers)),
		number("match_ms", n.matchTimeout.Milliseconds()), number("idle_ms", n.idleTimeout.Milliseconds()),
		number("age_ms", n.maxAge.Milliseconds()), number("keep_ms", n.retention.Milliseconds()),
		text("feeds", n.consumer),
	)
	return settings, documentLayout.Join(
		storeLayout,
		text("settlement", string(n.settledBy)), number("rakeBps", int64(n.rakeBps)), text("payout", joinInts(n.payoutBps)),
		text("tie", string(n.tie)), text("metadata", n.metadataJSON), text("entryToken", n.entryTokenJSON),
		text("creatorProfile", n.creatorProfileJSON),
	)
}

// encodeRematchDocument returns the document of a room with the same settings and another creator.
func (r *Room) encodeRematchDocument(storeLayout int, creatorProfileJSON string) string {
	number, text := redisdb.PackedInt, redisdb.PackedText
	return documentLayout.Join(
		storeLayout,
		text("settlement", string(r.SettledBy)), number("rakeBps", int64(r.RakeBps)), text("payout", joinInts(r.PayoutBps)),
		text("tie", string(r.Tie)), text("metadata", r.metadataJSON), text("entryToken", r.entryTokenJSON),
		text("creatorProfile", creatorProfileJSON),
	)
}

func joinInts[N int | int64](list []N) string {
	var b []byte
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
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
func decodeRoom(roomID string, hash redisdb.Hash) (*Room, error) {
	if len(hash) == 0 {
		return &Room{}, nil
	}
	r := &Room{RoomID: roomID}
	var stateErr, turnErr error
	r.Shared, stateErr = decodeState(hash)
	r.Turn, turnErr = decodeTurn(hash)
	err := errors.Join(
		stateErr, turnErr,
		r.decodeSettings(hash.Text("settings")), r.decodeLive(hash.Text("live")),
		r.decodeDocument(hash.Text("document")),
		r.decodePlayers(hash), r.decodeFields(hash), r.decodeReports(hash),
	)
	if err != nil {
		return nil, fmt.Errorf("room %s: %w", roomID, err)
	}
	return r, nil
}

// decodeHead returns a room that has only its settings, the fields that change with each event, and
// the seat of one user. values has these in this order, with nil for those that are missing.
func decodeHead(roomID string, values []any, userID int64) (*Room, error) {
	settings, exists := values[0].(string)
	live, _ := values[1].(string)
	if !exists {
		return nil, apierror.RoomNotFound
	}
	r := &Room{RoomID: roomID}
	err := errors.Join(r.decodeSettings(settings), r.decodeLive(live))
	if text, seated := values[2].(string); seated {
		seat, seatErr := decodeSeat(userID, text)
		r.Seats, err = []Seat{seat}, errors.Join(err, seatErr)
	}
	if err != nil {
		return nil, fmt.Errorf("room %s: %w", roomID, err)
	}
	return r, nil
}

func (r *Room) decodeSettings(text string) error {
	settings := settingsLayout.Split(text) // read in the order of the layout, as below: that is fastest
	r.Entry = wallet.Units(settings.Int("entry"))
	r.TokenCode, r.TokenDecimals = settings.Text("token"), int(settings.Int("decimals"))
	r.MaxPlayers = int(settings.Int("max_players"))
	r.GameID, r.CreatorID = settings.Int("game"), settings.Int("creator")
	r.Visibility = Visibility(settings.Text("visibility"))
	r.FriendsOnly, r.AutoStart = settings.Bool("friends_only"), settings.Bool("auto_start")
	r.MinPlayers = int(settings.Int("min_players"))
	r.MatchTimeout = time.Duration(settings.Int("match_ms")) * time.Millisecond
	r.consumer = settings.Text("feeds")
	return settings.Err()
}

func (r *Room) decodeLive(text string) error {
	live := liveLayout.Split(text)
	r.Status, r.Version = Status(live.Text("status")), live.Int("version")
	r.Seq = live.Int("seq")
	r.Position = strconv.FormatInt(r.Seq, 10) + "-" + live.Text("nonce")
	r.Pot, r.HostID = wallet.Units(live.Int("pot")), live.Int("host")
	return live.Err()
}

func (r *Room) decodeDocument(text string) (err error) {
	document := documentLayout.Split(text)
	r.SettledBy, r.RakeBps = SettledBy(document.Text("settlement")), int(document.Int("rakeBps"))
	r.PayoutBps, err = decodeInts(document.Text("payout"))
	r.Tie = Tie(document.Text("tie"))
	r.metadataJSON, r.entryTokenJSON = document.Text("metadata"), document.Text("entryToken")
	r.creatorProfileJSON = document.Text("creatorProfile")
	return errors.Join(document.Err(), err)
}

// decodePlayers reads the fields that are there for each seat and for each ban, and the host's
// profile.
func (r *Room) decodePlayers(hash redisdb.Hash) error {
	var errs []error
	var presence map[int64]string // by user id; nil while nobody follows the room
	r.Seats = make([]Seat, 0, 8)
	for field, text := range hash.All {
		if user, ok := parseUserField(field, seatFieldPrefix); ok {
			seat, err := decodeSeat(user, text)
			if err != nil {
				errs = append(errs, err)
			}
			r.Seats = append(r.Seats, seat)
		} else if user, ok := parseUserField(field, banFieldPrefix); ok {
			if r.bannedUsers == nil {
				r.bannedUsers = map[int64]bool{}
			}
			r.bannedUsers[user] = true
		} else if user, ok := parseUserField(field, presenceFieldPrefix); ok {
			if presence == nil {
				presence = map[int64]string{}
			}
			presence[user] = text
		}
	}
	slices.SortFunc(r.Seats, func(a, b Seat) int { return cmp.Compare(a.order, b.order) })
	if presence != nil && !r.Status.Ended() {
		errs = append(errs, r.decodePresence(presence))
	}
	if r.hostProfileJSON = hash.Text("host_profile"); r.hostProfileJSON == "" {
		if host, seated := r.Seat(r.HostID); seated {
			r.hostProfileJSON = host.profileJSON
		}
	}
	return errors.Join(errs...)
}

// decodePresence reads which players are connected. It ignores records of a seat that the player
// had before.
func (r *Room) decodePresence(presence map[int64]string) error {
	var errs []error
	r.Presence = make([]Presence, 0, len(r.Seats))
	for _, seat := range r.Seats {
		if seat.State != SeatActive {
			continue
		}
		p := Presence{UserID: seat.UserID}
		if text, ok := presence[seat.UserID]; ok {
			record := presenceLayout.Split(text)
			if told := record.Int("order"); told == seat.order {
				if p.Connected = record.Text("until") == ""; !p.Connected {
					p.GraceUntil = record.Time("until")
				}
			}
			errs = append(errs, record.Err())
		}
		r.Presence = append(r.Presence, p)
	}
	return errors.Join(errs...)
}

// parseUserField returns the user id behind a prefix, and false for the fields with other names.
func parseUserField(field, prefix string) (userID int64, ok bool) {
	text, ok := strings.CutPrefix(field, prefix)
	if !ok || text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	userID, err := strconv.ParseInt(text, 10, 64)
	return userID, err == nil
}

func decodeSeat(userID int64, text string) (Seat, error) {
	seat := seatLayout.Split(text)
	s := Seat{
		UserID: userID, State: SeatState(seat.Text("state")), Ready: seat.Bool("ready"), JoinedAt: seat.Time("joined"),
		Stake: wallet.Units(seat.Int("stake")), order: seat.Int("order"), profileJSON: seat.Text("profile"),
	}
	return s, seat.Err()
}

// decodeFields reads the fields that are not packed, and the result of a room that has ended.
func (r *Room) decodeFields(hash redisdb.Hash) (err error) {
	f := redisdb.NewFieldsOfHash("the fields of a room", hash)
	r.ID, r.Code = f.Int("id"), f.Text("code")
	r.CreatedAt, r.StartedAt, r.FinishedAt = f.Time("created"), f.Time("started"), f.Time("finished")
	r.DisputedAt = f.Time("disputed")
	r.HasStakes = r.Entry > 0 || r.isMatch() // as lib_has_stakes of package scripts
	if f.Has("stakes") {
		r.HasStakes = f.Text("stakes") == "1"
	}
	if r.Status == Disputed && f.Has("refund_at") { // builds before 2026-11-27 did not store it
		r.RefundAt = f.Time("refund_at")
	}
	if f.Has("window") && !r.Status.Ended() {
		window := windowLayout.Split(f.Text("window"))
		if r.ReportUntil, err = window.Time("window_ends"), window.Err(); err != nil {
			return err
		}
	}
	r.CancelReason, r.RematchID, r.Rake = f.Text("reason"), f.Text("rematch"), wallet.Units(f.Int("rake"))
	decimals := strconv.Itoa(r.TokenDecimals)
	var results, payouts, refunds []byte
	if f.Has("placements") {
		placements := f.Text("placements")
		if results, err = events.AppendResults(nil, placements); err == nil {
			payouts, err = events.AppendPayouts(nil, placements, decimals)
		}
	}
	if f.Has("refunds") && err == nil {
		refunds, err = events.AppendRefunds(nil, f.Text("refunds"), decimals)
	}
	r.placementsJSON, r.payoutsJSON, r.refundsJSON = string(results), string(payouts), string(refunds)
	return errors.Join(f.Err(), err)
}

// decodeReports reads the fields that are there for each report, of the seats that are decoded.
func (r *Room) decodeReports(hash redisdb.Hash) error {
	if r.SettledBy != SettledByConsensus {
		return nil
	}
	for _, seat := range r.Seats {
		text, ok := hash.Get(reportFieldPrefix + strconv.FormatInt(seat.UserID, 10))
		if !ok {
			continue
		}
		report, err := decodeReport(seat.UserID, text, r.Seats)
		if err != nil {
			return err
		}
		r.Reports = append(r.Reports, report)
	}
	return nil
}

func decodeInts(text string) ([]int, error) {
	list := make([]int, 0, 1+strings.Count(text, ","))
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(one)
		if err != nil {
			return nil, fmt.Errorf("decode a list of numbers: %w", err)
		}
		list = append(list, n)
	}
	return list, nil
}
