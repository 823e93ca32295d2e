package progress

import (
	"bytes"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/parlor-games/parlor/internal/apierror"
)

// Rules are what a game demands of its players' saves: a JSON array of objects, each with a path and what holds there.
//
//	[{"path": "hero.gold",  "maxGainPerMinute": 500, "initial": 100},
//	 {"path": "hero.level", "monotonic": "up", "min": 1, "max": 99},
//	 {"path": "hero.name",  "maxLength": 24},
//	 {"path": "seed",       "immutable": true},
//	 {"path": "vip",        "serverOnly": true},
//	 {"path": "score",      "max": 1000000, "mode": "shadow"}]
//
// A path names members of objects within each other, joined by dots; it does not enter arrays. The conditions:
//
//   - maxGainPerMinute: how fast a number may grow, by the clock of the store. A save may gain what the time since the last
//     save allows, and on top of it what is left of a bank of one minute's gain, so that players who save often are not
//     refused for saving early. Losses are free and give nothing back.
//   - initial (beside maxGainPerMinute): the most that the number may be in a first save. Without it a first save is free,
//     and a new slot with it: a game that knows where its players begin should say so.
//   - monotonic: "up" or "down": from save to save a number never goes the other way.
//   - min, max: bounds of a number, inclusive.
//   - maxLength: the most characters of a string, or elements of an array.
//   - immutable: once there, the value stays as it is.
//   - serverOnly: what a player sends here is dropped and what is stored stays; only the game's server writes it. It
//     stands alone: the server is not checked.
//
// A number or length that is missing, or not of that type, breaks its rule. Numbers are compared exactly.
// In mode "enforce", the default, a broken rule refuses the save; in mode "shadow" it is only logged.
type Rules struct {
	list   []rule
	wanted tree
}

type rule struct {
	path       string
	segments   []string
	gain       *big.Rat // per minute
	initial    *big.Rat
	monotonic  string
	min, max   *big.Rat
	maxLength  int // -1: none
	immutable  bool
	serverOnly bool
	shadow     bool
}

// The limits of rules.
const (
	maxRules = 64
	maxPath  = 256
)

// The names of the conditions, as in the rules and in refusals.
const (
	ruleGain       = "maxGainPerMinute"
	ruleInitial    = "initial"
	ruleMonotonic  = "monotonic"
	ruleMin        = "min"
	ruleMax        = "max"
	ruleMaxLength  = "maxLength"
	ruleImmutable  = "immutable"
	ruleServerOnly = "serverOnly"
)

// ParseRules reads the rules of a game, or refuses them with everything that is wrong, each fault at its field:
// "settings.progressRules[2].min". No text and null are no rules.
func ParseRules(raw []byte) (Rules, error) {
	v := jsontext.Value(bytes.TrimSpace(raw))
	if len(v) == 0 || string(v) == "null" {
		return Rules{}, nil
	}
	if !v.IsValid() {
		return Rules{}, apierror.InvalidRequest.WithField("settings.progressRules", "syntax", "is not valid JSON")
	}
	if v.Kind() != '[' {
		return Rules{}, apierror.InvalidRequest.WithField("settings.progressRules", "type", "must be an array")
	}
	p := ruleParser{faults: apierror.InvalidRequest}
	seen := map[string]int{} // path and condition to the rule that has it
	for _, element := range children(v) {
		i := len(p.rules.list)
		if i == maxRules {
			p.refuse("range", "", fmt.Sprintf("may have at most %d rules", maxRules))
			break
		}
		p.at = "settings.progressRules[" + strconv.Itoa(i) + "]"
		r := p.rule(element)
		for _, condition := range r.conditions() {
			key := condition + " " + r.path
			if first, twice := seen[key]; twice && r.path != "" {
				p.refuse("duplicate", condition, fmt.Sprintf("stands in rule %d for the same path", first))
			}
			seen[key] = i
		}
		p.rules.list = append(p.rules.list, r)
		p.rules.wanted.want(r.path, r.segments)
	}
	if len(p.faults.FieldErrors) > 0 {
		return Rules{}, p.faults
	}
	return p.rules, nil
}

type ruleParser struct {
	rules  Rules
	at     string
	faults *apierror.Error
}

func (p *ruleParser) refuse(code, name, message string) {
	field := p.at
	if name != "" {
		field += "." + name
	}
	p.faults = p.faults.WithField(field, code, message)
}

func (p *ruleParser) rule(v jsontext.Value) rule {
	r := rule{maxLength: -1}
	if v.Kind() != '{' {
		p.refuse("type", "", "must be an object")
		return r
	}
	before := len(p.faults.FieldErrors)
	for name, value := range children(v) {
		switch name := text(name); name {
		case "path":
			r.path = p.word(name, value)
			r.segments = strings.Split(r.path, ".")
			if r.path == "" || len(r.path) > maxPath || slices.Contains(r.segments, "") || len(r.segments) >= MaxDepth {
				p.refuse("format", name, "must be member names joined by dots")
			}
		case ruleGain:
			if r.gain = p.number(name, value); r.gain != nil && r.gain.Sign() < 0 {
				p.refuse("range", name, "must not be negative")
			}
		case ruleInitial:
			r.initial = p.number(name, value)
		case ruleMin:
			r.min = p.number(name, value)
		case ruleMax:
			r.max = p.number(name, value)
		case ruleMonotonic:
			if r.monotonic = p.word(name, value); r.monotonic != "up" && r.monotonic != "down" {
				p.refuse("range", name, `must be "up" or "down"`)
			}
		case ruleMaxLength:
			n, err := strconv.Atoi(string(value))
			if err != nil || n < 0 {
				p.refuse("type", name, "must be an integer, not negative")
				n = 0
			}
			r.maxLength = n
		case ruleImmutable:
			r.immutable = p.flag(name, value)
		case ruleServerOnly:
			r.serverOnly = p.flag(name, value)
		case "mode":
			switch p.word(name, value) {
			case "enforce":
			case "shadow":
				r.shadow = true
			default:
				p.refuse("range", name, `must be "enforce" or "shadow"`)
			}
		default:
			p.refuse("unknown", name, "is not a member of a rule")
		}
	}
	switch conditions := r.conditions(); {
	case len(p.faults.FieldErrors) > before:
	case r.path == "":
		p.refuse("required", "path", "is required")
	case r.initial != nil && r.gain == nil:
		p.refuse("required", ruleGain, "is required beside initial")
	case len(conditions) == 0:
		p.refuse("required", "", "needs a condition, such as max")
	case r.serverOnly && len(conditions) > 1:
		p.refuse("range", ruleServerOnly, "stands alone")
	case r.min != nil && r.max != nil && r.min.Cmp(r.max) > 0:
		p.refuse("range", ruleMin, "must not be above max")
	}
	return r
}

func (p *ruleParser) word(name string, v jsontext.Value) string {
	if v.Kind() != '"' {
		p.refuse("type", name, "must be a string")
		return ""
	}
	return text(v)
}

func (p *ruleParser) number(name string, v jsontext.Value) *big.Rat {
	n, ok := number(v)
	if !ok {
		p.refuse("type", name, "must be a number")
	}
	return n
}

func (p *ruleParser) flag(name string, v jsontext.Value) bool {
	if v.Kind() != 't' && v.Kind() != 'f' {
		p.refuse("type", name, "must be true or false")
	}
	return v.Kind() == 't'
}

// conditions names what the rule demands, in the order in which it is checked.
func (r rule) conditions() []string {
	var names []string
	for _, c := range []struct {
		name string
		set  bool
	}{
		{ruleMin, r.min != nil},
		{ruleMax, r.max != nil},
		{ruleMaxLength, r.maxLength >= 0},
		{ruleImmutable, r.immutable},
		{ruleMonotonic, r.monotonic != ""},
		{ruleGain, r.gain != nil},
		{ruleServerOnly, r.serverOnly},
	} {
		if c.set {
			names = append(names, c.name)
		}
	}
	return names
}

// compare tells whether any rule looks at the state before.
func (rules Rules) compare() bool {
	return slices.ContainsFunc(rules.list, func(r rule) bool {
		return r.gain != nil || r.monotonic != "" || r.immutable || r.serverOnly
	})
}

// breach is one condition that a state does not keep.
type breach struct {
	rule   string // the condition's name
	path   string
	code   string // "required", "type", "range", "immutable"
	reason string
	shadow bool
}

// pace is what is left of the bank of each maxGainPerMinute, by path, in µs of gaining; what is not named is full.
type pace map[string]int64

const fullBank = 60_000_000 // a minute

// judge checks a player's next state against the previous one (nil: there is none), elapsed ms later. It answers
// the state with the server's fields as they were, what is left of the banks, and every breach.
func (rules Rules) judge(previous, next jsontext.Value, banks pace, elapsed int64) (jsontext.Value, pace, []breach) {
	next, breaches := rules.keepServerOnly(previous, next)
	before, now := rules.values(previous), rules.values(next)
	left := pace{}
	for _, r := range rules.list {
		breaches = append(breaches, r.bounds(now)...)
		breaches = append(breaches, r.steps(before, now, banks, left, elapsed)...)
	}
	return next, left, breaches
}

// judgeOld checks a state that comes back as the newest: its bounds, not what led there; the server's fields stay as they are.
func (rules Rules) judgeOld(newest, old jsontext.Value) (jsontext.Value, []breach) {
	state, breaches := rules.keepServerOnly(newest, old)
	now := rules.values(state)
	for _, r := range rules.list {
		breaches = append(breaches, r.bounds(now)...)
	}
	return state, breaches
}

func (rules Rules) values(state jsontext.Value) map[string]jsontext.Value {
	found := map[string]jsontext.Value{}
	rules.wanted.collect(state, found)
	return found
}

// keepServerOnly puts what is stored in the place of what the player sent.
func (rules Rules) keepServerOnly(stored, sent jsontext.Value) (jsontext.Value, []breach) {
	var breaches []breach
	var kept, given map[string]jsontext.Value
	for _, r := range rules.list {
		if !r.serverOnly {
			continue
		}
		if kept == nil {
			kept, given = rules.values(stored), rules.values(sent)
		}
		if r.shadow {
			if given[r.path] != nil && !same(given[r.path], kept[r.path]) {
				breaches = append(breaches, r.breach(ruleServerOnly, "range", "is written by the server only"))
			}
			continue
		}
		next, ok := put(sent, r.segments, kept[r.path])
		if !ok {
			breaches = append(breaches, r.breach(ruleServerOnly, "type", "lies in something that is no object"))
			continue
		}
		sent = next
	}
	return sent, breaches
}

// bounds checks what can be told from the state alone.
func (r rule) bounds(now map[string]jsontext.Value) (breaches []breach) {
	value := now[r.path]
	refuse := func(condition, code, format string, args ...any) {
		breaches = append(breaches, r.breach(condition, code, fmt.Sprintf(format, args...)))
	}
	for _, condition := range r.conditions() {
		if condition == ruleImmutable || condition == ruleServerOnly {
			continue // absence is a value to them
		}
		if value == nil {
			refuse(condition, "required", "is missing")
			continue
		}
		if condition == ruleMaxLength {
			if n, ok := length(value); !ok {
				refuse(condition, "type", "must be a string or an array")
			} else if n > r.maxLength {
				refuse(condition, "range", "has the length %d, at most %d is allowed", n, r.maxLength)
			}
			continue
		}
		n, ok := number(value)
		switch {
		case !ok:
			refuse(condition, "type", "must be a number")
		case condition == ruleMin && n.Cmp(r.min) < 0:
			refuse(condition, "range", "must be at least %s", decimal(r.min))
		case condition == ruleMax && n.Cmp(r.max) > 0:
			refuse(condition, "range", "must be at most %s", decimal(r.max))
		}
	}
	return breaches
}

// steps checks what the state before and the time since then decide. A path that was not there before begins like in a first save.
func (r rule) steps(before, now map[string]jsontext.Value, banks, left pace, elapsed int64) (breaches []breach) {
	refuse := func(condition, code, format string, args ...any) {
		breaches = append(breaches, r.breach(condition, code, fmt.Sprintf(format, args...)))
	}
	was, is := before[r.path], now[r.path]
	if r.immutable && was != nil && (is == nil || !same(was, is)) {
		refuse(ruleImmutable, "immutable", "cannot be changed")
	}
	next, ok := number(is)
	if !ok || r.monotonic == "" && r.gain == nil {
		return breaches // bounds has said what is wrong
	}
	previous, ok := number(was)
	if !ok {
		if r.initial != nil && next.Cmp(r.initial) > 0 {
			refuse(ruleInitial, "range", "must be at most %s in a first save", decimal(r.initial))
		}
		return breaches
	}
	switch {
	case r.monotonic == "up" && next.Cmp(previous) < 0:
		refuse(ruleMonotonic, "range", "cannot go down from %s", decimal(previous))
	case r.monotonic == "down" && next.Cmp(previous) > 0:
		refuse(ruleMonotonic, "range", "cannot go up from %s", decimal(previous))
	}
	if r.gain == nil {
		return breaches
	}
	bank, ok := banks[r.path]
	if !ok {
		bank = fullBank
	}
	// A gain costs time: so many µs at the allowed speed. There are those since the last save, and those in the bank.
	budget := bank + min(elapsed, maxElapsed)*1000
	cost := int64(0)
	if gained := new(big.Rat).Sub(next, previous); gained.Sign() > 0 {
		allowed := new(big.Rat).Mul(r.gain, big.NewRat(budget, fullBank))
		if gained.Cmp(allowed) > 0 {
			refuse(ruleGain, "range", "gained %s, at most %s is possible since the last save", decimal(gained), decimal(allowed))
			return breaches
		}
		micros := gained.Mul(gained.Quo(gained, r.gain), big.NewRat(fullBank, 1))
		cost = new(big.Int).Quo(micros.Num(), micros.Denom()).Int64()
	}
	if rest := min(budget-cost, fullBank); rest < fullBank {
		left[r.path] = rest
	}
	return breaches
}

const maxElapsed = 1 << 42 // ms: 139 years, so that µs stay in an int64

func (r rule) breach(condition, code, reason string) breach {
	return breach{rule: condition, path: r.path, code: code, reason: reason, shadow: r.shadow}
}

// decimal prints a number for a sentence, cut to six digits after the point.
func decimal(n *big.Rat) string {
	s := n.FloatString(6)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// tree holds the paths of all rules, so that one walk over a state finds all values.
type tree struct {
	path  string // not empty: a value that is wanted
	under map[string]*tree
}

func (t *tree) want(path string, segments []string) {
	if path == "" {
		return
	}
	for _, name := range segments {
		if t.under == nil {
			t.under = map[string]*tree{}
		}
		if t.under[name] == nil {
			t.under[name] = &tree{}
		}
		t = t.under[name]
	}
	t.path = path
}

func (t *tree) collect(state jsontext.Value, into map[string]jsontext.Value) {
	if len(t.under) == 0 || state.Kind() != '{' {
		return
	}
	for name, value := range children(state) {
		if sub := t.under[text(name)]; sub != nil {
			if sub.path != "" {
				into[sub.path] = value
			}
			sub.collect(value, into)
		}
	}
}

func (p pace) String() string {
	if len(p) == 0 {
		return "{}"
	}
	s, _ := json.Marshal(map[string]int64(p), json.Deterministic(true)) // a map of integers always encodes
	return string(s)
}

func parsePace(s string) pace {
	var p map[string]int64
	if json.Unmarshal([]byte(s), &p) != nil {
		return pace{} // a new rule's: full
	}
	return maps.Clone(p)
}
