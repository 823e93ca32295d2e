package progress

import (
	"bytes"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
)

// The limits of rules.
const (
	maxRules     = 64  // rules of a game
	maxPathBytes = 256 // bytes of a path
)

// rulesField is the place of the rules in the definition of a game.
const rulesField = "settings.progressRules"

// ParseRules parses the rules of a game. Empty text and null are no rules. It returns
// invalid_request with everything that is wrong, each at its field:
// "settings.progressRules[2].min".
func ParseRules(raw []byte) (Rules, error) {
	v := wire.RawJSON(bytes.TrimSpace(raw))
	if len(v) == 0 || string(v) == "null" {
		return Rules{}, nil
	}
	var invalid apierror.FieldErrors
	switch {
	case !v.IsValid():
		invalid.Add(rulesField, "syntax", "is not valid JSON")
	case v.Kind() != '[':
		invalid.Add(rulesField, "type", "must be an array")
	}
	if err := invalid.Err(); err != nil {
		return Rules{}, err
	}
	var list []rule
	for _, element := range members(v) {
		i := len(list)
		p := ruleParser{field: rulesField + "[" + strconv.Itoa(i) + "]", errors: &invalid}
		if i == maxRules {
			p.field = rulesField + "[" + strconv.Itoa(i-1) + "]"
			p.addError("range", "", fmt.Sprintf("may have at most %d rules", maxRules))
			break
		}
		r := p.parse(element)
		p.rejectDuplicates(r, list)
		list = append(list, r)
	}
	if err := invalid.Err(); err != nil {
		return Rules{}, err
	}
	return newRules(list), nil
}

// ruleParser parses one rule and collects what is wrong with it.
type ruleParser struct {
	field  string // of the rule: "settings.progressRules[2]"
	errors *apierror.FieldErrors
	failed bool
}

// addError adds an error at a member of the rule, at the rule itself for the name "".
func (p *ruleParser) addError(code, name, message string) {
	field := p.field
	if name != "" {
		field += "." + name
	}
	p.failed = true
	p.errors.Add(field, code, message)
}

// memberParsers parse the members of a rule, by name.
var memberParsers = map[string]func(p *ruleParser, r *rule, name string, v wire.RawJSON){
	"path":  (*ruleParser).parsePath,
	"mode":  (*ruleParser).parseMode,
	"slots": (*ruleParser).parseSlots,

	conditionGain:       (*ruleParser).parseGain,
	conditionMonotonic:  (*ruleParser).parseMonotonic,
	conditionMaxLength:  (*ruleParser).parseMaxLength,
	conditionInitial:    func(p *ruleParser, r *rule, name string, v wire.RawJSON) { r.maxInitial = p.number(name, v) },
	conditionMin:        func(p *ruleParser, r *rule, name string, v wire.RawJSON) { r.min = p.number(name, v) },
	conditionMax:        func(p *ruleParser, r *rule, name string, v wire.RawJSON) { r.max = p.number(name, v) },
	conditionImmutable:  func(p *ruleParser, r *rule, name string, v wire.RawJSON) { r.immutable = p.boolean(name, v) },
	conditionServerOnly: func(p *ruleParser, r *rule, name string, v wire.RawJSON) { r.serverOnly = p.boolean(name, v) },
}

func (p *ruleParser) parse(v wire.RawJSON) rule {
	r := rule{maxLength: -1}
	if v.Kind() != '{' {
		p.addError("type", "", "must be an object")
		return r
	}
	for quoted, value := range members(v) {
		name := unquote(quoted)
		if parseMember := memberParsers[name]; parseMember != nil {
			parseMember(p, &r, name, value)
		} else {
			p.addError("unknown", name, "is not a member of a rule")
		}
	}
	if !p.failed {
		p.checkCombination(r)
	}
	return r
}

// checkCombination checks what concerns several members of a rule.
func (p *ruleParser) checkCombination(r rule) {
	switch conditions := r.conditions(); {
	case r.path == "" && (len(r.slots) == 0 || len(conditions) > 1):
		p.addError("required", "path", "is required")
	case r.maxInitial != nil && r.maxGainPerMinute == nil:
		p.addError("required", conditionGain, "is required beside initial")
	case len(conditions) == 0:
		p.addError("required", "", "needs a condition, such as max")
	case r.serverOnly && len(conditions) > 1:
		p.addError("range", conditionServerOnly, "cannot be combined with other conditions")
	case r.min != nil && r.max != nil && r.min.Cmp(r.max) > 0:
		p.addError("range", conditionMin, "must not be above max")
	}
}

// rejectDuplicates adds an error for each condition that an earlier rule has for the same path in
// the same slot.
func (p *ruleParser) rejectDuplicates(r rule, earlier []rule) {
	for _, condition := range r.conditions() {
		first := slices.IndexFunc(earlier, func(other rule) bool {
			return other.path == r.path && slices.Contains(other.conditions(), condition) &&
				(r.slots == nil || other.slots == nil ||
					slices.ContainsFunc(r.slots, func(name string) bool { return slices.Contains(other.slots, name) }))
		})
		if first >= 0 && r.path != "" {
			p.addError("duplicate", condition, fmt.Sprintf("is in rule %d for the same path", first))
		}
	}
}

func (p *ruleParser) parseSlots(r *rule, name string, v wire.RawJSON) {
	if v.Kind() != '[' {
		p.addError("type", name, "must be an array")
		return
	}
	r.slots = []string{}
	for _, element := range members(v) {
		var invalid apierror.FieldErrors
		slot := p.text(name, element)
		if checkSlotName(&invalid, slot); invalid.Err() != nil {
			p.addError("format", name, "must be names of save slots")
			return
		}
		r.slots = append(r.slots, slot)
	}
	if len(r.slots) == 0 || len(r.slots) > MaxSlots {
		p.addError("range", name, fmt.Sprintf("must be 1 to %d names", MaxSlots))
	}
}

func (p *ruleParser) parsePath(r *rule, name string, v wire.RawJSON) {
	r.path = p.text(name, v)
	r.members = strings.Split(r.path, ".")
	if r.path == "" || len(r.path) > maxPathBytes || slices.Contains(r.members, "") || len(r.members) >= MaxStateDepth {
		p.addError("format", name, "must be member names joined by dots")
	}
}

func (p *ruleParser) parseMode(r *rule, name string, v wire.RawJSON) {
	mode := p.text(name, v)
	if mode != "enforce" && mode != "shadow" {
		p.addError("range", name, `must be "enforce" or "shadow"`)
	}
	r.shadow = mode == "shadow"
}

func (p *ruleParser) parseGain(r *rule, name string, v wire.RawJSON) {
	if r.maxGainPerMinute = p.number(name, v); r.maxGainPerMinute != nil && r.maxGainPerMinute.Sign() < 0 {
		p.addError("range", name, "must not be negative")
	}
}

func (p *ruleParser) parseMonotonic(r *rule, name string, v wire.RawJSON) {
	if r.monotonic = p.text(name, v); r.monotonic != "up" && r.monotonic != "down" {
		p.addError("range", name, `must be "up" or "down"`)
	}
}

func (p *ruleParser) parseMaxLength(r *rule, name string, v wire.RawJSON) {
	n, err := strconv.Atoi(string(v))
	if err != nil || n < 0 {
		p.addError("type", name, "must be an integer, not negative")
		n = 0
	}
	r.maxLength = n
}

func (p *ruleParser) text(name string, v wire.RawJSON) string {
	if v.Kind() != '"' {
		p.addError("type", name, "must be a string")
		return ""
	}
	return unquote(v)
}

func (p *ruleParser) number(name string, v wire.RawJSON) *big.Rat {
	n, ok := parseNumber(v)
	if !ok {
		p.addError("type", name, "must be a number")
	}
	return n
}

func (p *ruleParser) boolean(name string, v wire.RawJSON) bool {
	if v.Kind() != 't' && v.Kind() != 'f' {
		p.addError("type", name, "must be true or false")
	}
	return v.Kind() == 't'
}
