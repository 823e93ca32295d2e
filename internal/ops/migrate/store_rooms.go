package migrate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/internal/store/keys"
)

// The packed fields of a room of layout 1: the names of their values, in order. Only the last may
// contain the separator.
var (
	oldSettings = []string{
		"room", "game", "token", "decimals", "entry", "max", "min", "friends", "visibility", "auto", "idle", "age", "match",
		"keep", "creator",
	}
	oldState    = []string{"status", "host", "version", "position", "pot", "hostProfile"}
	oldDocument = []string{
		"id", "code", "creatorProfile", "settlement", "rakeBps", "payout", "tie", "metadata", "entryToken",
	}
	oldSeat = []string{"user", "state", "ready", "since", "stake", "profile"}
)

// The packed fields of a room of layout 3, by the names of layout 1. A value that was added to them
// since is one that older texts lack.
var (
	newSettings = []string{
		"entry", "token", "decimals", "max", "game", "creator", "visibility", "friends", "auto", "min", "match", "idle",
		"age", "keep",
	}
	newDocument = []string{"settlement", "rakeBps", "payout", "tie", "metadata", "entryToken", "creatorProfile"}
	newLive     = []string{
		"status", "version", "seq", "nonce", "pot", "active", "reserved", "readyCount", "host", "changed",
	}
	newSeat = []string{"state", "ready", "since", "stake", "order", "profile"}
)

// unpack returns the values of a packed text by their names.
func unpack(text, separator string, names []string) (map[string]string, error) {
	parts := strings.SplitN(text, separator, len(names))
	if len(parts) != len(names) {
		return nil, fmt.Errorf("%d values, want %d up to %s", len(parts), len(names), names[len(names)-1])
	}
	values := make(map[string]string, len(names))
	for i, name := range names {
		values[name] = parts[i]
	}
	return values, nil
}

// pack returns values as one text, in the order of the names.
func pack(values map[string]string, separator string, names []string) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = values[name]
	}
	return strings.Join(parts, separator)
}

// oldRoom is a room of layout 1.
type oldRoom struct {
	hash                      map[string]string
	settings, state, document map[string]string
	seats                     []map[string]string
	gameID                    int64
	seq                       string
	shard                     keys.Shard
	newID                     string
}

func decodeRoom(k oldKey, hash map[string]string) (*oldRoom, error) {
	r := &oldRoom{hash: hash, shard: k.Shard, seq: hash["seq"]}
	var settingsErr, stateErr, documentErr error
	r.settings, settingsErr = unpack(hash["set"], "|", oldSettings)
	r.state, stateErr = unpack(hash["state"], "|", oldState)
	r.document, documentErr = unpack(hash["doc"], "\t", oldDocument)
	if err := errors.Join(settingsErr, stateErr, documentErr); err != nil {
		return nil, err
	}
	for one := range strings.SplitSeq(hash["seats"], "\t") {
		if one == "" {
			continue
		}
		seat, err := unpack(one, "|", oldSeat)
		if err != nil {
			return nil, err
		}
		r.seats = append(r.seats, seat)
	}
	game, err := strconv.ParseInt(r.settings["game"], 10, 64)
	_, seqErr := strconv.ParseInt(r.seq, 10, 64)
	if r.gameID = game; errors.Join(err, seqErr) != nil || game < 1 || game > keys.MaxGameID {
		return nil, errors.New("the room has no game or no events")
	}
	if k.IsPaid {
		r.shard = keys.EconomyShard(r.gameID)
	}
	var ok bool
	if r.newID, ok = keys.MigrateRoomID(k.Text, r.shard); !ok || r.settings["room"] != k.Text {
		return nil, errors.New("the id is not the one of the room")
	}
	return r, nil
}

func (r *oldRoom) hasEnded() bool {
	status := r.state["status"]
	return status == "FINISHED" || status == "CANCELLED"
}

// convertRoom returns a room with a new id, and its places in indexes. Its events are not migrated:
// its followers read the room again.
func (p *passState) convertRoom(k oldKey, raw rawKey) ([]record, error) {
	if _, isOld := raw.hash["set"]; !isOld {
		if _, isNew := raw.hash["settings"]; isNew {
			return nil, nil
		}
		return nil, errors.New("the room has no settings")
	}
	isFirst := p.isFirst(k, countRooms)
	r, err := decodeRoom(k, raw.hash)
	if err != nil {
		return nil, err
	}
	fields, err := r.fields()
	if err != nil {
		return nil, err
	}
	if k.IsPaid && !r.hasEnded() && isFirst {
		pot, err := parseUnits(r.state["pot"])
		if err != nil {
			return nil, err
		}
		if p.pots[r.gameID] == nil {
			p.pots[r.gameID] = balances{}
		}
		p.pots[r.gameID].add(r.settings["token"], pot, 0)
	}
	records := []record{
		hashRecord(keys.Room(r.shard, r.newID), fields),
		{key: keys.RoomCode(r.shard, fields["code"]), kind: kindString, values: []string{r.newID}},
		memberRecord(keys.RoomIndex(r.shard, r.gameID, "all"), "0", r.newID),
	}
	if raw.due == "" && !r.hasEnded() {
		return nil, errors.New("nobody sweeps the room")
	}
	if raw.due != "" {
		records = append(records, memberRecord(keys.RoomsDue(r.shard), raw.due, r.newID))
	}
	if !k.IsPaid {
		records = append(records, memberRecord(keys.FreeRooms(r.shard), "0", r.newID))
	}
	status := r.state["status"]
	if r.settings["visibility"] == "public" {
		records = append(records, memberRecord(keys.RoomIndex(r.shard, r.gameID, strings.ToLower(status)), "0", r.newID))
		most, err := strconv.Atoi(r.settings["max"])
		if err != nil {
			return nil, errors.New("the room has no number of seats")
		}
		if status == "CREATED" && len(r.seats) < most {
			records = append(records, memberRecord(keys.RoomIndex(r.shard, r.gameID, "open"), "0", r.newID))
		}
	}
	if !r.hasEnded() {
		for _, seat := range r.seats {
			user, err := strconv.ParseInt(seat["user"], 10, 64)
			if err != nil {
				return nil, errors.New("a seat has no player")
			}
			records = append(records, memberRecord(keys.PlayerRooms(r.shard, user), "0", r.newID))
		}
	}
	return records, nil
}

// fields returns the hash of the room in layout 3.
func (r *oldRoom) fields() (map[string]string, error) {
	fields := map[string]string{
		"settings": pack(r.settings, "|", newSettings), "document": pack(r.document, "\t", newDocument),
		"id": r.document["id"], "code": r.document["code"],
	}
	var active, reserved, ready, bans, stakes int64
	isHostSeated := false
	for i, seat := range r.seats {
		switch seat["state"] {
		case "active":
			active++
			if seat["ready"] == "1" {
				ready++
			}
		case "reserved":
			reserved++
		}
		stake, err := parseUnits(seat["stake"])
		if err != nil {
			return nil, err
		}
		stakes += stake
		isHostSeated = isHostSeated || seat["user"] == r.state["host"]
		// Later seats have at least 1,000 for the version of the room in which they were taken.
		seat["order"] = strconv.Itoa(i + 1)
		fields["s"+seat["user"]] = pack(seat, "|", newSeat)
	}
	if pot, err := parseUnits(r.state["pot"]); err != nil || pot != stakes {
		return nil, fmt.Errorf("its pot is %s and its stakes are %d", r.state["pot"], stakes)
	}
	for field := range r.hash {
		if user, ok := strings.CutPrefix(field, "ban:"); ok {
			fields["b"+user] = "1"
			bans++
		}
	}
	if bans > 0 {
		fields["bans"] = strconv.FormatInt(bans, 10)
	}
	if !isHostSeated {
		fields["host_profile"] = r.state["hostProfile"]
	}
	_, oldNonce, _ := strings.Cut(r.state["position"], "-")
	nonce, err := strconv.ParseInt(oldNonce, 10, 64)
	if err != nil {
		return nil, errors.New("the room has no position")
	}
	live := maps.Clone(r.state)
	live["seq"], live["nonce"], live["changed"] = r.seq, nonceOf(nonce), r.hash["changed"]
	live["active"], live["reserved"] = strconv.FormatInt(active, 10), strconv.FormatInt(reserved, 10)
	live["readyCount"] = strconv.FormatInt(ready, 10)
	fields["live"] = pack(live, "|", newLive)
	for _, field := range []string{"created", "started", "finished", "reason", "rake"} {
		if value, ok := r.hash[field]; ok {
			fields[field] = value
		}
	}
	if rematch := r.hash["rematch"]; rematch != "" {
		id, ok := keys.MigrateRoomID(rematch, r.shard)
		if !ok {
			return nil, errors.New("the rematch is no room")
		}
		fields["rematch"] = id
	}
	return fields, r.addOutcome(fields)
}

// outcome is an element of the results, payouts or refunds of a room of layout 1.
type outcome struct {
	UserID int64        `json:"userId"`
	Place  *int64       `json:"place"`
	Score  wire.RawJSON `json:"score"`
	Amount string       `json:"amount"`
}

// addOutcome adds how the room ended.
func (r *oldRoom) addOutcome(fields map[string]string) error {
	var results, payouts, refunds []outcome
	for field, list := range map[string]*[]outcome{"results": &results, "payouts": &payouts, "refunds": &refunds} {
		if text := r.hash[field]; text != "" {
			if err := wire.Unmarshal([]byte(text), list); err != nil {
				return fmt.Errorf("decode the %s: %w", field, err)
			}
		}
	}
	user := func(o outcome) string { return strconv.FormatInt(o.UserID, 10) }
	switch r.state["status"] {
	case "FINISHED":
		var b strings.Builder
		placed := map[int64]bool{}
		for _, result := range results {
			units, place := "", int64(0)
			if i := slices.IndexFunc(payouts, func(o outcome) bool { return o.UserID == result.UserID }); i >= 0 {
				units = payouts[i].Amount
			}
			if result.Place != nil {
				place = *result.Place
			}
			placed[result.UserID] = true
			fmt.Fprintf(&b, "%s:%d:%s:%s;", user(result), place, units, result.Score)
		}
		for _, payout := range payouts { // of a forfeited seat
			if !placed[payout.UserID] {
				fmt.Fprintf(&b, "%s:0:%s:;", user(payout), payout.Amount)
			}
		}
		fields["placements"] = b.String()
	case "CANCELLED":
		var b strings.Builder
		for _, refund := range refunds {
			fmt.Fprintf(&b, "%s:%s;", user(refund), refund.Amount)
		}
		fields["refunds"] = b.String()
	}
	return nil
}

// convertRoomCounter goes on counting rooms where layout 1 was. A free shard has the counter under
// the same name. The one of the economy becomes one for each game: no number is given twice.
func (p *passState) convertRoomCounter(k oldKey, number string) []record {
	if !k.IsPaid {
		return nil
	}
	var records []record
	for _, game := range p.gameIDs {
		records = append(records, record{
			key: keys.RoomCounter(keys.EconomyShard(game)), kind: kindString, values: []string{number},
		})
	}
	return records
}
