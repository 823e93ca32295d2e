package progress

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/parlor-games/parlor/internal/base/wire"
)

// Rules are what a game requires of its players' saves: a JSON array of objects, each with a path
// and conditions on the value there.
//
//	[{"path": "hero.gold",  "maxGainPerMinute": 500, "initial": 100},
//	 {"path": "hero.level", "monotonic": "up", "min": 1, "max": 99},
//	 {"path": "hero.name",  "maxLength": 24},
//	 {"path": "seed",       "immutable": true},
//	 {"path": "vip",        "serverOnly": true},
//	 {"path": "score",      "max": 1000000, "mode": "shadow"},
//	 {"path": "bag.gems", "monotonic": "down", "slots": ["main"]},
//	 {"slots": ["main", "settings"]}]
//
// A path consists of member names of nested objects, joined by dots; it does not enter arrays. The
// conditions:
//
//   - maxGainPerMinute: how fast a number may grow, by the clock of Redis. It is a token bucket
//     that holds one minute's gain: a save may gain what the time since the last save allows, plus
//     what has accumulated, so that players who save often are not rejected for saving early.
//     Losses are free and refill nothing.
//   - initial (beside maxGainPerMinute): the largest number in a first save. Without it a first
//     save is free, and so is the first save of every new slot: a game that knows where its players
//     begin should set it, and name the slots that there are.
//   - monotonic: "up" or "down": from save to save a number never goes the other way.
//   - min, max: bounds of a number, inclusive.
//   - maxLength: the most characters of a string, or elements of an array.
//   - immutable: once present, the value stays as it is.
//   - serverOnly: what a player sends here is dropped and what is stored stays; only the game's
//     server and the operator write it. It cannot be combined with other conditions on its path.
//
// With slots, the names of save slots, a rule holds in these slots only. A rule with slots and
// without a path says that the game has no others: each new slot begins with a first save.
//
// A restored version is checked as if the player had sent its state.
//
// A number or length that is missing, or of another type, violates its rule. Numbers are compared
// exactly. In mode "enforce", the default, a violation rejects the save; in mode "shadow" it is
// only logged.
type Rules struct {
	list       []rule
	paths      pathTree // of all rules
	serverOnly pathTree // of the rules that keep what is stored
}

func newRules(list []rule) Rules {
	rules := Rules{list: list}
	for _, r := range list {
		rules.paths.add(r.path, r.members)
		if r.serverOnly && !r.shadow {
			rules.serverOnly.add(r.path, r.members)
		}
	}
	return rules
}

type rule struct {
	path             string   // "": the rule concerns whole slots
	slots            []string // in which the rule holds; nil: in all
	members          []string // member names of path
	maxGainPerMinute *big.Rat // per minute; nil: no such condition
	maxInitial       *big.Rat // nil: no such condition
	monotonic        string   // "up", "down" or ""
	min, max         *big.Rat // nil: no such condition
	maxLength        int      // characters or elements; -1: no such condition
	immutable        bool
	serverOnly       bool
	shadow           bool
}

// The names of the conditions, as in the rules and in errors.
const (
	conditionGain       = "maxGainPerMinute"
	conditionInitial    = "initial"
	conditionMonotonic  = "monotonic"
	conditionMin        = "min"
	conditionMax        = "max"
	conditionMaxLength  = "maxLength"
	conditionImmutable  = "immutable"
	conditionServerOnly = "serverOnly"
	conditionSlots      = "slots" // only without a path
)

// conditions returns the names of the rule's conditions, in the order in which they are checked.
func (r rule) conditions() []string {
	var names []string
	for _, c := range []struct {
		name string
		set  bool
	}{
		{conditionMin, r.min != nil},
		{conditionMax, r.max != nil},
		{conditionMaxLength, r.maxLength >= 0},
		{conditionImmutable, r.immutable},
		{conditionMonotonic, r.monotonic != ""},
		{conditionGain, r.maxGainPerMinute != nil},
		{conditionServerOnly, r.serverOnly},
		{conditionSlots, r.path == "" && r.slots != nil},
	} {
		if c.set {
			names = append(names, c.name)
		}
	}
	return names
}

// needPrevious reports whether any rule compares with the previous state.
func (rules Rules) needPrevious() bool {
	return slices.ContainsFunc(rules.list, func(r rule) bool {
		return r.maxGainPerMinute != nil || r.monotonic != "" || r.immutable || r.serverOnly
	})
}

// withoutServerOnly returns the rules that hold for the game's server.
func (rules Rules) withoutServerOnly() Rules {
	return newRules(slices.DeleteFunc(slices.Clone(rules.list), func(r rule) bool { return r.serverOnly }))
}

// inSlot returns the rules that hold in a slot. A rule without a path holds where it is broken: in
// the slots that it does not name.
func (rules Rules) inSlot(name string) Rules {
	holdsElsewhere := func(r rule) bool {
		return r.slots != nil && slices.Contains(r.slots, name) == (r.path == "")
	}
	if !slices.ContainsFunc(rules.list, holdsElsewhere) {
		return rules
	}
	return newRules(slices.DeleteFunc(slices.Clone(rules.list), holdsElsewhere))
}

// violation is a condition that a state does not meet.
type violation struct {
	condition string // name of the condition, as in the rules
	path      string
	code      string // "required", "type", "range", "immutable"
	reason    string
	shadow    bool // only to be logged
}

func (r rule) newViolation(condition, code, format string, args ...any) violation {
	return violation{
		condition: condition,
		path:      r.path,
		code:      code,
		reason:    fmt.Sprintf(format, args...),
		shadow:    r.shadow,
	}
}

// check compares a player's next state with the previous one (nil: there is none), which is
// elapsedMS old. It returns the state with the stored serverOnly members, the new rate state, and
// every violation.
func (rules Rules) check(
	previous, next wire.RawJSON,
	rates gainBuckets,
	elapsedMS int64,
) (wire.RawJSON, gainBuckets, []violation) {
	before := rules.valuesByPath(previous)
	next, violations := rules.keepServerOnly(before, next)
	now := rules.valuesByPath(next)
	newRates := gainBuckets{}
	for _, r := range rules.list {
		if r.path == "" {
			violations = append(violations, r.newViolation(conditionSlots, "range", "is no slot of this game"))
			continue
		}
		violations = append(violations, r.checkValue(now[r.path])...)
		violations = append(violations, r.checkChange(before[r.path], now[r.path])...)
		violations = append(violations, r.checkGain(before[r.path], now[r.path], rates, newRates, elapsedMS)...)
	}
	return next, newRates, violations
}

// valuesByPath returns the values at the paths of the rules, by path.
func (rules Rules) valuesByPath(state wire.RawJSON) map[string]wire.RawJSON {
	found := map[string]wire.RawJSON{}
	rules.paths.collect(state, found)
	return found
}

// keepServerOnly returns the sent state with the serverOnly members of the stored one, whose values
// are given by path.
func (rules Rules) keepServerOnly(stored map[string]wire.RawJSON, sent wire.RawJSON) (wire.RawJSON, []violation) {
	var violations []violation
	var sentValues map[string]wire.RawJSON
	for _, r := range rules.list {
		if !r.serverOnly || !r.shadow {
			continue
		}
		if sentValues == nil {
			sentValues = rules.valuesByPath(sent)
		}
		if sentValues[r.path] != nil && !equalJSON(sentValues[r.path], stored[r.path]) {
			violations = append(violations, r.newViolation(conditionServerOnly, "range", "is written by the server only"))
		}
	}
	if len(rules.serverOnly.children) == 0 {
		return sent, violations
	}
	replaced := replacement{unreachable: map[string]bool{}}
	out := replaced.appendObject(make(wire.RawJSON, 0, len(sent)+64), &rules.serverOnly, sent, stored)
	for _, r := range rules.list {
		if r.serverOnly && !r.shadow && replaced.unreachable[r.path] {
			violations = append(violations, r.newViolation(conditionServerOnly, "type",
				"is inside a value that is not an object"))
		}
	}
	return out, violations
}

// checkValue checks what follows from the value alone.
func (r rule) checkValue(value wire.RawJSON) (violations []violation) {
	for _, condition := range r.conditions() {
		code, reason := "", ""
		switch {
		case condition == conditionImmutable || condition == conditionServerOnly: // hold for an absent value too
		case value == nil:
			code, reason = "required", "is missing"
		case condition == conditionMaxLength:
			code, reason = r.checkLength(value)
		default:
			code, reason = r.checkNumber(condition, value)
		}
		if code != "" {
			violations = append(violations, r.newViolation(condition, code, "%s", reason))
		}
	}
	return violations
}

// checkLength returns the code and reason of a violation of maxLength, "" when there is none.
func (r rule) checkLength(value wire.RawJSON) (code, reason string) {
	n, ok := jsonLength(value)
	switch {
	case !ok:
		return "type", "must be a string or an array"
	case n > r.maxLength:
		return "range", fmt.Sprintf("has the length %d, at most %d is allowed", n, r.maxLength)
	}
	return "", ""
}

// checkNumber returns the code and reason of a violation by a number, "" when there is none.
func (r rule) checkNumber(condition string, value wire.RawJSON) (code, reason string) {
	n, ok := parseNumber(value)
	switch {
	case !ok:
		return "type", "must be a number"
	case condition == conditionMin && n.Cmp(r.min) < 0:
		return "range", "must be at least " + formatDecimal(r.min)
	case condition == conditionMax && n.Cmp(r.max) > 0:
		return "range", "must be at most " + formatDecimal(r.max)
	}
	return "", ""
}

// checkChange checks a value against the one before it by the rule. A value that was absent before
// is checked as a first save. checkValue reports values of the wrong type.
func (r rule) checkChange(before, now wire.RawJSON) (violations []violation) {
	if r.immutable && before != nil && (now == nil || !equalJSON(before, now)) {
		violations = append(violations, r.newViolation(conditionImmutable, "immutable", "cannot be changed"))
	}
	next, ok := parseNumber(now)
	if !ok {
		return violations
	}
	previous, ok := parseNumber(before)
	switch {
	case !ok && r.maxInitial != nil && next.Cmp(r.maxInitial) > 0:
		violations = append(violations,
			r.newViolation(conditionInitial, "range", "must be at most %s in a first save", formatDecimal(r.maxInitial)))
	case ok && r.monotonic == "up" && next.Cmp(previous) < 0:
		violations = append(violations,
			r.newViolation(conditionMonotonic, "range", "cannot go down from %s", formatDecimal(previous)))
	case ok && r.monotonic == "down" && next.Cmp(previous) > 0:
		violations = append(violations,
			r.newViolation(conditionMonotonic, "range", "cannot go up from %s", formatDecimal(previous)))
	}
	return violations
}

// checkGain compares the gain of a number with the gain that the elapsed time allows. It puts the
// rest of the bucket into newRates.
func (r rule) checkGain(before, now wire.RawJSON, rates, newRates gainBuckets, elapsedMS int64) []violation {
	next, okNext := parseNumber(now)
	previous, okPrevious := parseNumber(before)
	if r.maxGainPerMinute == nil || !okNext || !okPrevious {
		return nil
	}
	accumulated, ok := rates[r.path]
	if !ok {
		accumulated = fullBucketUS
	}
	// A gain costs time: so many µs at the allowed rate.
	budget := accumulated + min(elapsedMS, maxElapsedMS)*1000
	cost := int64(0)
	if gained := new(big.Rat).Sub(next, previous); gained.Sign() > 0 {
		allowed := new(big.Rat).Mul(r.maxGainPerMinute, big.NewRat(budget, fullBucketUS))
		if gained.Cmp(allowed) > 0 {
			return []violation{r.newViolation(conditionGain, "range", "gained %s, at most %s is possible since the last save",
				formatDecimal(gained), formatDecimal(allowed))}
		}
		micros := gained.Mul(gained.Quo(gained, r.maxGainPerMinute), big.NewRat(fullBucketUS, 1))
		cost = new(big.Int).Quo(micros.Num(), micros.Denom()).Int64()
	}
	if remaining := min(budget-cost, fullBucketUS); remaining < fullBucketUS {
		newRates[r.path] = remaining
	}
	return nil
}

// gainBuckets is the accumulated time in the bucket of each maxGainPerMinute, by path, in µs of
// gaining at the allowed rate. A bucket that is not named is full.
type gainBuckets map[string]int64

const (
	fullBucketUS = 60_000_000 // µs: a minute
	maxElapsedMS = 1 << 42    // 139 years: in µs it still fits an int64
)

func (p gainBuckets) String() string {
	if len(p) == 0 {
		return "{}"
	}
	encoded, _ := wire.Marshal(map[string]int64(p)) // a map of integers always encodes
	return string(encoded)
}

// parseGainBuckets decodes what String returned. Other text gives full buckets, those of new rules.
func parseGainBuckets(text string) gainBuckets {
	var p gainBuckets
	if wire.Unmarshal([]byte(text), &p) != nil {
		return gainBuckets{}
	}
	return p
}

// formatDecimal returns a number for a message, cut to six digits after the point.
func formatDecimal(n *big.Rat) string {
	s := n.FloatString(6)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// pathTree holds the paths of all rules, so that one walk over a state finds all values.
type pathTree struct {
	path     string // "" unless a rule's path ends here
	children map[string]*pathTree
}

func (t *pathTree) add(path string, segments []string) {
	if path == "" {
		return
	}
	for _, name := range segments {
		if t.children == nil {
			t.children = map[string]*pathTree{}
		}
		if t.children[name] == nil {
			t.children[name] = &pathTree{}
		}
		t = t.children[name]
	}
	t.path = path
}

// addPaths adds the paths of the tree to a set.
func (t *pathTree) addPaths(set map[string]bool) {
	if t.path != "" {
		set[t.path] = true
	}
	for _, child := range t.children {
		child.addPaths(set)
	}
}

// hasValue reports whether values has one at a path of the tree that is in no other.
func (t *pathTree) hasValue(values map[string]wire.RawJSON) bool {
	if t.path != "" {
		return values[t.path] != nil
	}
	for _, child := range t.children {
		if child.hasValue(values) {
			return true
		}
	}
	return false
}

// collect puts the values at the paths of the tree into values.
func (t *pathTree) collect(state wire.RawJSON, values map[string]wire.RawJSON) {
	if len(t.children) == 0 || state.Kind() != '{' {
		return
	}
	for name, value := range members(state) {
		if child := t.children[unquote(name)]; child != nil {
			if child.path != "" {
				values[child.path] = value
			}
			child.collect(value, values)
		}
	}
}
