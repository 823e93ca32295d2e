package progress

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/internal/base/apierror"
	"github.com/parlor-games/parlor/internal/base/wire"
	"github.com/parlor-games/parlor/tests/testkit"
)

func TestRulesAreParsedOrRejectedWithEveryError(t *testing.T) {
	long := strings.Repeat("a.", 31) + "a"
	for _, c := range []struct{ rules, errors string }{
		{``, ""},
		{`null`, ""},
		{` [] `, ""},
		{`[{"path":"a","min":-1.5,"max":1e3,"monotonic":"down","mode":"shadow"}]`, ""},
		{`[{"path":"a","maxGainPerMinute":0.5,"initial":7},{"path":"a","immutable":true}]`, ""},
		{`[{"path":"b","serverOnly":true},{"path":"c","maxLength":0}]`, ""},
		{`[{"path":"a","max":1,"slots":["main","b.c"]},{"path":"a","max":2,"slots":["d"]},{"slots":["main","d"]}]`, ""},
		{
			`[{"path":"a","max":1,"slots":["main"]},{"path":"a","max":2,"slots":["b","main"]},{"path":"a","max":3}]`,
			"progressRules[1].max duplicate, progressRules[2].max duplicate",
		},
		{
			`[{"slots":[]},{"slots":["a/b"]},{"slots":["."]},{"slots":5},{"slots":["a"],"max":1}]`,
			"progressRules[0].slots range, progressRules[1].slots format, progressRules[2].slots format, " +
				"progressRules[3].slots type, progressRules[4].path required",
		},
		{`[`, "progressRules syntax"},
		{`[{"path":"a","path":"b","max":1}]`, "progressRules syntax"},
		{`{}`, "progressRules type"},
		{`[1,{"path":"a","max":"1"}]`, "progressRules[0] type, progressRules[1].max type"},
		{`[{"max":1}]`, "progressRules[0].path required"},
		{`[{"path":"a"}]`, "progressRules[0] required"},
		{`[{"path":"a","immutable":false}]`, "progressRules[0] required"},
		{`[{"path":"a","initial":1}]`, "progressRules[0].maxGainPerMinute required"},
		{
			`[{"path":"","max":1},{"path":"a..b","max":1},{"path":5,"max":1},{"path":"` + long + `","max":1}]`,
			"progressRules[0].path format, progressRules[1].path format, progressRules[2].path type, " +
				"progressRules[2].path format, progressRules[3].path format",
		},
		{
			`[{"path":"a","maxGainPerMinute":-1},{"path":"b","monotonic":"sideways"},` +
				`{"path":"c","maxLength":-1},{"path":"d","maxLength":1.5}]`,
			"progressRules[0].maxGainPerMinute range, progressRules[1].monotonic range, " +
				"progressRules[2].maxLength type, progressRules[3].maxLength type",
		},
		{`[{"path":"a","min":2,"max":1}]`, "progressRules[0].min range"},
		{`[{"path":"a","serverOnly":true,"max":1}]`, "progressRules[0].serverOnly range"},
		{
			`[{"path":"a","immutable":1,"mode":"off","colour":1}]`,
			"progressRules[0].immutable type, progressRules[0].mode range, progressRules[0].colour unknown",
		},
		{`[{"path":"a","max":1},{"path":"a","min":0,"max":2}]`, "progressRules[1].max duplicate"},
		{`[{"path":"a","max":1e999999999}]`, "progressRules[0].max type"},
		{"[" + manyRules(65) + "]", "progressRules[63] range"},
	} {
		_, err := ParseRules([]byte(c.rules))
		var got []string
		if err != nil {
			r, ok := apierror.As(err)
			if !ok {
				t.Fatalf("%s: %v", c.rules, err)
			}
			for _, f := range r.FieldErrors {
				got = append(got, strings.TrimPrefix(f.Field, "settings.")+" "+f.Code)
			}
		}
		if strings.Join(got, ", ") != c.errors {
			t.Errorf("%s\n got %s\nwant %s", c.rules, strings.Join(got, ", "), c.errors)
		}
	}
}

func manyRules(n int) string {
	var rules []string
	for i := range n {
		rules = append(rules, fmt.Sprintf(`{"path":"p%d","max":1}`, i))
	}
	return strings.Join(rules, ",")
}

func TestRulesCheckAState(t *testing.T) {
	const minute = 60_000
	for _, c := range []struct {
		name, rule     string
		previous, next string
		elapsed        int64
		want           string // condition and code of each violation
		stored         string // when it is not next
	}{
		{"min", `"min":1`, ``, `{"n":1}`, 0, "", ""},
		{"below min", `"min":1`, ``, `{"n":0.999999999999999999999}`, 0, "min range", ""},
		{"max", `"max":9007199254740993`, ``, `{"n":9007199254740993}`, 0, "", ""},
		{"above max, equal as float64", `"max":9007199254740993`, ``, `{"n":9007199254740994}`, 0, "max range", ""},
		{"both bounds", `"min":0,"max":1`, ``, `{"n":2}`, 0, "max range", ""},
		{"exponents", `"max":100`, ``, `{"n":1.0e2}`, 0, "", ""},
		{"a huge exponent", `"max":100`, ``, `{"n":1e-999999999}`, 0, "max type", ""},
		{"missing", `"max":1`, ``, `{}`, 0, "max required", ""},
		{"null", `"max":1`, ``, `{"n":null}`, 0, "max type", ""},
		{"a string of digits", `"max":1`, ``, `{"n":"1"}`, 0, "max type", ""},

		{"string length in characters", `"maxLength":3`, ``, `{"n":"é\u00e9😀"}`, 0, "", ""},
		{"too long", `"maxLength":3`, ``, `{"n":"abcd"}`, 0, "maxLength range", ""},
		{"array length", `"maxLength":2`, ``, `{"n":[[1,2,3],"]"]}`, 0, "", ""},
		{"array too long", `"maxLength":2`, ``, `{"n":[1,{},3]}`, 0, "maxLength range", ""},
		{"object has no length", `"maxLength":2`, ``, `{"n":{}}`, 0, "maxLength type", ""},

		{"up", `"monotonic":"up"`, `{"n":2}`, `{"n":2.0}`, 0, "", ""},
		{"up goes down", `"monotonic":"up"`, `{"n":2}`, `{"n":1.99}`, 0, "monotonic range", ""},
		{"down", `"monotonic":"down"`, `{"n":2}`, `{"n":-2}`, 0, "", ""},
		{"down goes up", `"monotonic":"down"`, `{"n":2}`, `{"n":3}`, 0, "monotonic range", ""},
		{"monotonic at first", `"monotonic":"up"`, ``, `{"n":-5}`, 0, "", ""},
		{"monotonic vanishes", `"monotonic":"up"`, `{"n":2}`, `{}`, 0, "monotonic required", ""},

		{"immutable is set once", `"immutable":true`, `{}`, `{"n":1}`, 0, "", ""},
		{"immutable stays away", `"immutable":true`, `{}`, `{}`, 0, "", ""},
		{"immutable is equal", `"immutable":true`, `{"n":{"a":1,"b":[null]}}`, `{"n":{"b":[null],"a":1.0}}`, 0, "", ""},
		{"immutable is equal text", `"immutable":true`, `{"n":"x"}`, `{"n":"\u0078"}`, 0, "", ""},
		{"immutable changes", `"immutable":true`, `{"n":[1,2]}`, `{"n":[1,2,3]}`, 0, "immutable immutable", ""},
		{"immutable changes its kind", `"immutable":true`, `{"n":1}`, `{"n":"1"}`, 0, "immutable immutable", ""},
		{"immutable lost a member", `"immutable":true`, `{"n":{"a":1,"b":2}}`, `{"n":{"a":1}}`, 0, "immutable immutable", ""},
		{"immutable vanishes", `"immutable":true`, `{"n":true}`, `{}`, 0, "immutable immutable", ""},
		{"immutable becomes null", `"immutable":true`, `{"n":false}`, `{"n":null}`, 0, "immutable immutable", ""},

		{"a first save is free", `"maxGainPerMinute":1`, ``, `{"n":1000}`, 0, "", ""},
		{"a first save is bounded", `"maxGainPerMinute":1,"initial":10`, ``, `{"n":11}`, 0, "initial range", ""},
		{"so is a field that is new", `"maxGainPerMinute":1,"initial":10`, `{}`, `{"n":11}`, minute, "initial range", ""},
		{"a full bucket", `"maxGainPerMinute":7`, `{"n":1}`, `{"n":8}`, 0, "", ""},
		{"more than the bucket", `"maxGainPerMinute":7`, `{"n":1}`, `{"n":8.000000001}`, 0, "maxGainPerMinute range", ""},
		{"bucket and time", `"maxGainPerMinute":7`, `{"n":1}`, `{"n":15}`, minute, "", ""},
		{"more than bucket and time", `"maxGainPerMinute":7`, `{"n":1}`, `{"n":15.1}`, minute, "maxGainPerMinute range", ""},
		{"an hour", `"maxGainPerMinute":0.5`, `{"n":0}`, `{"n":30.5}`, 60 * minute, "", ""},
		{"a very long time", `"maxGainPerMinute":1`, `{"n":0}`, `{"n":1000000}`, 1 << 62, "", ""},
		{"a loss", `"maxGainPerMinute":0`, `{"n":5}`, `{"n":-5}`, 0, "", ""},
		{"no gain at all", `"maxGainPerMinute":0`, `{"n":5}`, `{"n":5.1}`, minute, "maxGainPerMinute range", ""},
		{"gain missing", `"maxGainPerMinute":1`, `{"n":5}`, `{}`, minute, "maxGainPerMinute required", ""},

		{"server only is dropped", `"serverOnly":true`, ``, `{"a":1,"n":5}`, 0, "", `{"a":1}`},
		{"server only stays", `"serverOnly":true`, `{"n":7}`, `{"n":5,"a":1}`, 0, "", `{"n":7,"a":1}`},
		{"server only is restored", `"serverOnly":true`, `{"n":7}`, `{}`, 0, "", `{"n":7}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := testkit.Must(ParseRules([]byte(`[{"path":"n",` + c.rule + `}]`)))(t)
			state, _, violations := rules.check(wire.RawJSON(c.previous), wire.RawJSON(c.next), nil, c.elapsed)
			var got []string
			for _, v := range violations {
				got = append(got, v.condition+" "+v.code)
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("got %q, want %q: %+v", strings.Join(got, ", "), c.want, violations)
			}
			if c.stored == "" {
				c.stored = c.next
			}
			if string(state) != c.stored {
				t.Errorf("stored %s, want %s", state, c.stored)
			}
		})
	}
}

func TestNoGainExceedsTheRateHoweverOftenThePlayerSaves(t *testing.T) {
	rules := testkit.Must(ParseRules([]byte(`[{"path":"n","maxGainPerMinute":60}]`)))(t)
	// A cheater gains 5 a second and saves again after each rejection.
	have, rates := 0, gainBuckets(nil)
	const seconds = 600
	since := int64(0)
	for range seconds {
		since += 1000
		previous, next := fmt.Sprintf(`{"n":%d}`, have), fmt.Sprintf(`{"n":%d}`, have+5)
		_, left, violations := rules.check(wire.RawJSON(previous), wire.RawJSON(next), rates, since)
		if len(violations) == 0 {
			have, rates, since = have+5, parseGainBuckets(left.String()), 0
		}
	}
	if have > seconds+60 || have < seconds {
		t.Errorf("gained %d in %d s at 1 a second and a bucket of 60", have, seconds)
	}
}

func TestServerOnlyFieldsDeepInAState(t *testing.T) {
	for _, c := range []struct{ stored, sent, want, violation string }{
		{`{"a":{"b":{"c":1}}}`, `{}`, `{"a":{"b":{"c":1}}}`, ""},
		{`{"a":{"b":{"c":1}}}`, `{"x":1,"a":{"y":2}}`, `{"x":1,"a":{"y":2,"b":{"c":1}}}`, ""},
		{`{"a":{"b":{"c":1}}}`, `{"a":{"b":{"c":[{"d":2}],"e":3}}}`, `{"a":{"b":{"c":1,"e":3}}}`, ""},
		{`{}`, `{"a":{"b":{"c":2}}}`, `{"a":{"b":{}}}`, ""},
		{`{}`, `{"\u0061":{"b":{"\u0063":2}}}`, `{"\u0061":{"b":{}}}`, ""},
		{`{}`, `{"a":{}}`, `{"a":{}}`, ""},
		{`{"a":{"b":{"c":1}}}`, `{"a":5}`, ``, "serverOnly type"},
	} {
		rules := testkit.Must(ParseRules([]byte(`[{"path":"a.b.c","serverOnly":true}]`)))(t)
		state, _, violations := rules.check(wire.RawJSON(c.stored), wire.RawJSON(c.sent), nil, 0)
		if c.violation != "" {
			if len(violations) != 1 || violations[0].condition+" "+violations[0].code != c.violation {
				t.Errorf("%s over %s: %+v", c.sent, c.stored, violations)
			}
			continue
		}
		if string(state) != c.want || len(violations) > 0 {
			t.Errorf("%s over %s: %s %+v, want %s", c.sent, c.stored, state, violations, c.want)
		}
	}
}

func FuzzState(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":{"b":1e5},"n":-0.0}`, `[1,"x"]`, `{"a":{"b":"\ud83d\ude00"}}`, ` {"a":[[]]}`, `{"a":1,"a":2}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":{"b":2},"n":1}`))
	}
	rules := testkit.Must(ParseRules(
		[]byte(`[{"path":"a.b","serverOnly":true},{"path":"n","maxGainPerMinute":5,"min":0,"max":9},` +
			`{"path":"s","maxLength":4},{"path":"i.j","immutable":true},{"path":"m","monotonic":"up"}]`),
	))(f)
	f.Fuzz(func(t *testing.T, sent, stored []byte) {
		in, err := SaveInput{Slot: "main", State: sent}.normalized()
		before, errBefore := SaveInput{Slot: "main", State: stored}.normalized()
		if err != nil || errBefore != nil {
			return
		}
		if !equalJSON(in.State, in.State) {
			t.Fatalf("%s does not equal itself", in.State)
		}
		state, left, violations := rules.check(before.State, in.State, nil, 1000)
		again, err := SaveInput{Slot: "main", State: state}.normalized()
		if err != nil || string(again.State) != string(state) {
			t.Fatalf("%s became %s: %v", in.State, state, err)
		}
		for _, accumulated := range parseGainBuckets(left.String()) {
			if accumulated < 0 || accumulated >= fullBucketUS {
				t.Fatalf("accumulated: %d", accumulated)
			}
		}
		for _, v := range violations {
			if v.condition == conditionServerOnly {
				return
			}
		}
		if got, want := rules.valuesByPath(state)["a.b"],
			rules.valuesByPath(before.State)["a.b"]; string(got) != string(want) {
			t.Fatalf("the server's field went from %s to %s", want, got)
		}
	})
}

func FuzzParseRules(f *testing.F) {
	f.Add([]byte(`[{"path":"a.b","maxGainPerMinute":5,"initial":1},{"path":"s","maxLength":4,"mode":"shadow"}]`))
	f.Add([]byte(`[{"path":"\u0061","min":1e2,"max":3}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		rules, err := ParseRules(raw)
		if _, expected := apierror.As(err); err != nil && !expected {
			t.Fatalf("an internal error: %v", err)
		}
		_, _, _ = rules.check(wire.RawJSON(`{"a":1}`), wire.RawJSON(`{"a":{"b":2}}`), nil, 0)
	})
}

func TestServerOnlyMembersKeepWhatIsStored(t *testing.T) {
	const rules = `[{"path":"a.b","serverOnly":true},{"path":"a.c.d","serverOnly":true},{"path":"e","serverOnly":true},` +
		`{"path":"e.f","serverOnly":true}]`
	for _, c := range []struct{ stored, sent, want, violations string }{
		{`{}`, `{"a":{"b":1,"x":2},"e":3,"y":4}`, `{"a":{"x":2},"y":4}`, ""},
		{`{"a":{"b":1,"c":{"d":2}},"e":{"f":3}}`, `{}`, `{"a":{"b":1,"c":{"d":2}},"e":{"f":3}}`, ""},
		{`{"a":{"b":1}}`, `{"a":{"c":{"d":9,"z":8},"b":7}}`, `{"a":{"c":{"z":8},"b":1}}`, ""},
		{`{"e":{"f":3,"g":4}}`, `{"e":5}`, `{"e":{"f":3,"g":4}}`, ""},
		{`{"a":{"b":1}}`, `{"\u0061":{"\u0062":2}}`, `{"\u0061":{"\u0062":1}}`, ""},
		{`{"a":{"b":1}}`, `{"a":5}`, `{"a":5}`, "a.b a.c.d"},
		{`{"a":{"b":1}}`, `{"a":{"c":[]}}`, `{"a":{"c":[],"b":1}}`, "a.c.d"},
		{``, `{"a":{"c":{}}}`, `{"a":{"c":{}}}`, ""},
	} {
		parsed := testkit.Must(ParseRules([]byte(rules)))(t)
		got, _, violations := parsed.check(wire.RawJSON(c.stored), wire.RawJSON(c.sent), nil, 0)
		var paths []string
		for _, v := range violations {
			paths = append(paths, v.path)
		}
		if string(got) != c.want || strings.Join(paths, " ") != c.violations {
			t.Errorf("%s over %s\n got %s %v\nwant %s [%s]", c.sent, c.stored, got, paths, c.want, c.violations)
		}
	}
}

// A walk over a large state costs more than everything else in a save, so its number must not grow
// with the number of rules.
func TestManyServerOnlyRulesCopyTheStateOnce(t *testing.T) {
	state := largeState()
	allocated := func(rules int) int {
		parsed := testkit.Must(ParseRules([]byte(serverOnlyRules(rules))))(t)
		result := testing.Benchmark(func(b *testing.B) {
			for b.Loop() {
				parsed.check(state, state, nil, 0)
			}
		})
		return int(result.AllocedBytesPerOp())
	}
	if one, many := allocated(1), allocated(64); many > one+len(state) {
		t.Errorf("64 rules allocate %d bytes, one allocates %d", many, one)
	}
}

// largeState returns a state of 250 KiB with many members.
func largeState() wire.RawJSON {
	var b strings.Builder
	b.WriteString(`{"hero":{"gold":1}`)
	for i := 0; b.Len() < 250<<10; i++ {
		fmt.Fprintf(&b, `,"item%d":{"x":%d,"name":"thing"}`, i, i)
	}
	b.WriteByte('}')
	return wire.RawJSON(b.String())
}

func serverOnlyRules(n int) string {
	var rules []string
	for i := range n {
		rules = append(rules, fmt.Sprintf(`{"path":"item%d.x","serverOnly":true}`, i))
	}
	return "[" + strings.Join(rules, ",") + "]"
}

func BenchmarkServerOnlyRules(b *testing.B) {
	state := largeState()
	for _, n := range []int{0, 1, 10, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			rules := testkit.Must(ParseRules([]byte(serverOnlyRules(n))))(b)
			for b.Loop() {
				rules.check(state, state, nil, 0)
			}
		})
	}
}
