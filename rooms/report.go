package rooms

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parlor-games/parlor/internal/base/principal"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// Report is the result of the game as one player of a room with consensus reported it. It never
// changes.
type Report struct {
	UserID int64 // who reports
	// Placements names the players who had not forfeited when the report was made, best place first.
	Placements []Placement
	// DisputesLost is how often staff decided a dispute of the game otherwise than the player had
	// reported. Only the operator gets it, of a disputed room.
	DisputesLost int64
}

// resultsJSON returns the placements as JSON.
func (p Report) resultsJSON() string {
	text, err := wire.Marshal(p.Placements)
	if err != nil {
		panic("rooms: encode a report: " + err.Error()) // a score that is not finite; JSON has none
	}
	return string(text)
}

// encodeReport returns ranked placements as a report is stored: the place of each seat in seating
// order, 0 for those that are not named, with commas between them; then, if somebody has a score,
// "|" and the scores in the same way.
func encodeReport(ranked []Placement, seats []Seat) string {
	places, scores := make([]string, len(seats)), make([]string, len(seats))
	hasScore := false
	for i, seat := range seats {
		places[i] = "0"
		at := slices.IndexFunc(ranked, func(p Placement) bool { return p.UserID == seat.UserID })
		if at < 0 {
			continue
		}
		places[i] = strconv.Itoa(ranked[at].Place)
		if score := ranked[at].Score; score != nil {
			text, err := wire.Marshal(*score)
			if err != nil {
				panic("rooms: encode a score: " + err.Error()) // a score that is not finite; JSON has none
			}
			scores[i], hasScore = string(text), true
		}
	}
	text := strings.Join(places, ",")
	if hasScore {
		text += "|" + strings.Join(scores, ",")
	}
	return text
}

// decodeReport returns the report of a user. The seats of a room that has reports never change.
func decodeReport(userID int64, text string, seats []Seat) (Report, error) {
	placesText, scoresText, hasScore := strings.Cut(text, "|")
	places, err := decodeInts(placesText)
	scores := make([]string, len(places))
	if hasScore {
		scores = strings.Split(scoresText, ",")
	}
	if err != nil || len(places) != len(seats) || len(scores) != len(seats) {
		return Report{}, fmt.Errorf("decode the report of player %d: it does not fit %d seats", userID, len(seats))
	}
	report := Report{UserID: userID, Placements: make([]Placement, 0, len(seats))}
	for i, place := range places {
		if place == 0 {
			continue
		}
		p := Placement{UserID: seats[i].UserID, Place: place}
		if scores[i] != "" {
			if err := wire.Unmarshal([]byte(scores[i]), &p.Score); err != nil {
				return Report{}, fmt.Errorf("decode the report of player %d: %w", userID, err)
			}
		}
		report.Placements = append(report.Placements, p)
	}
	slices.SortStableFunc(report.Placements, func(a, b Placement) int { return cmp.Compare(a.Place, b.Place) })
	return report, nil
}

// rankAmong returns the placements of the active players, ranked without the others, because a
// player may forfeit after the report. The report must name all of active.
func rankAmong(placements []Placement, active []int64) []Placement {
	left := slices.DeleteFunc(slices.Clone(placements), func(p Placement) bool {
		return !slices.Contains(active, p.UserID)
	})
	sortPlacements(left, active)
	countPlaces(left)
	return left
}

// samePlaces reports whether two rankings give the same places. Scores are not compared: players
// may count them differently and still agree on who won.
func samePlaces(a, b []Placement) bool {
	return slices.EqualFunc(a, b, func(a, b Placement) bool { return a.UserID == b.UserID && a.Place == b.Place })
}

// reportEffect is the effect of a report on a room, as room_report takes it.
type reportEffect string

const (
	addReport        reportEffect = "add"        // others have to report, or the room is disputed already
	agreeReport      reportEffect = "agree"      // it is the last one, and all are the same: the room is finished
	concedeReport    reportEffect = "concede"    // one of two players reports not to have won: the room is finished
	contradictReport reportEffect = "contradict" // others reported otherwise: the room is disputed
	repeatReport     reportEffect = "repeat"     // nothing: it says what the player, or the result, said before
	conflictReport   reportEffect = "conflict"   // nothing: it says something else than that
	invalidReport    reportEffect = ""           // nothing: it names other players than the room has
)

// reporting is a report that a script is to store, with what was found by comparing it.
type reporting struct {
	effect   reportEffect
	compared int64         // with whose report; 0 for none
	seen     string        // "<status>|<active seats>" of the room for which the effect was found
	text     string        // as it is stored
	window   time.Duration // that begins with it, when it is the first one
	settlement
}

// judgeReport returns the effect of a player's report on the room. It returns invalid_request for
// placements that validatePlacements rejects while the game goes on or is disputed.
func (r *Room) judgeReport(user int64, placements []Placement) (reporting, error) {
	active := r.ActivePlayers()
	rp := reporting{
		seen: string(r.Status) + "|" + strconv.Itoa(len(active)), settlement: settlement{consumer: r.consumer},
	}
	invalid := validatePlacements(placements, active)
	ranked := rankPlacements(placements, active)
	repeatOf := func(other []Placement) reportEffect {
		if invalid == nil && samePlaces(ranked, rankAmong(other, active)) {
			return repeatReport
		}
		return conflictReport
	}
	switch {
	case r.Status == Finished:
		rp.effect = repeatOf(r.Placements())
		return rp, nil
	case r.Status != Started && r.Status != Disputed || invalid != nil:
		return rp, invalid
	}
	rp.text = encodeReport(ranked, r.Seats)
	reports := r.activeReports(active)
	if own := slices.IndexFunc(reports, func(p Report) bool { return p.UserID == user }); own >= 0 {
		rp.effect = repeatOf(reports[own].Placements)
		return rp, nil
	}
	if len(reports) > 0 {
		rp.compared = reports[0].UserID
	}
	isLast := len(reports)+1 == len(active)
	isSame := len(reports) == 0 || samePlaces(ranked, rankAmong(reports[0].Placements, active))
	concedes := len(active) == 2 && slices.ContainsFunc(ranked, func(p Placement) bool {
		return p.UserID == user && p.Place > 1
	})
	switch {
	case r.Status == Disputed:
		rp.effect = addReport
		return rp, nil
	case isSame && isLast:
		rp.effect = agreeReport
	case concedes:
		rp.effect = concedeReport
	case !isSame:
		rp.effect = contradictReport
		return rp, nil
	default:
		rp.effect = addReport
		return rp, nil
	}
	rp.settlement = r.computeSettlement(ranked)
	return rp, nil
}

// activeReports returns the reports of the active players.
func (r *Room) activeReports(active []int64) []Report {
	return slices.DeleteFunc(slices.Clone(r.Reports), func(p Report) bool {
		return !slices.Contains(active, p.UserID)
	})
}

// reportedOtherwise returns the active players whose report is not this result.
func (r *Room) reportedOtherwise(ranked []Placement) []int64 {
	active := r.ActivePlayers()
	var users []int64
	for _, report := range r.activeReports(active) {
		if !samePlaces(ranked, rankAmong(report.Placements, active)) {
			users = append(users, report.UserID)
		}
	}
	return users
}

// windowOutcome is the effect of the end of a window on a room, as room_window_close takes it.
type windowOutcome string

const (
	windowFinishes windowOutcome = "finish"  // silence agrees with the reports
	windowDisputes windowOutcome = "dispute" // it may not: they report a draw
	windowReopens  windowOutcome = "open"    // the player who reported has left: the game goes on
)

// settleWindow returns the effect of the end of the report window if all players without a report
// were connected, and the settlement by the report of the first player in seating order.
func (r *Room) settleWindow() (windowOutcome, settlement) {
	active := r.ActivePlayers()
	reports := r.activeReports(active)
	none := settlement{users: r.seatedUsers(), roomVersion: r.Version, consumer: r.consumer}
	if len(reports) == 0 {
		return windowReopens, none
	}
	ranked := rankAmong(reports[0].Placements, active)
	isDraw := len(ranked) > 1 && ranked[1].Place == 1
	contradicts := func(p Report) bool { return !samePlaces(ranked, rankAmong(p.Placements, active)) }
	if isDraw && len(reports) < len(active) || slices.ContainsFunc(reports, contradicts) {
		return windowDisputes, none
	}
	return windowFinishes, r.computeSettlement(ranked)
}

// revealReports makes the room show its reports to the operator, when nobody can report what others
// did: once it is disputed or has ended.
func (r *Room) revealReports(caller principal.Caller) {
	r.showReports = caller.Role == principal.Operator && (r.Status == Disputed || r.Status.Ended())
}
