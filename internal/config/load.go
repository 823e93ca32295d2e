package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mode says for what the settings are loaded.
type Mode string

// The modes.
const (
	Serve Mode = "serve" // everything must be set and known; no weak secret
	Dev   Mode = "dev"   // nothing must be set
	Tool  Mode = "tool"  // what is set must be right; the command says what it needs, see Require
)

// Sources is where values come from.
type Sources struct {
	Flags   map[string]string                         // by name; only those that were given
	Environ []string                                  // "NAME=value", as os.Environ; an empty value counts as not set
	Read    func(path string) ([]byte, error)         // reads the settings file and those that PARLOR_…_FILE name
	Decode  func(text []byte) (map[string]any, error) // decodes the settings file
	// Check holds further rules, by name of the setting, that need other packages.
	Check map[string]func(value string) error
}

// SettingError is one thing that is wrong with the settings.
type SettingError struct {
	Setting string // "PARLOR_ROOM_SHARDS (environment)"
	Problem string // what is wrong, and how to put it right
}

// SettingErrors is all that is wrong, as one error with a line for each.
type SettingErrors []SettingError

// ExitStatus is that of a process which was configured wrongly: EX_CONFIG of sysexits.h.
const ExitStatus = 78

func (f SettingErrors) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Setting + ": " + fault.Problem
	}
	return strings.Join(lines, "\n")
}

// Load reads, converts and checks all settings. The error is of type Faults. The settings are whole even then,
// with the defaults in place of what is wrong, so that they can be shown.
func Load(mode Mode, from Sources) (Settings, error) {
	l := loader{mode: mode, from: from, env: map[string]string{}}
	for _, pair := range from.Environ {
		if name, value, _ := strings.Cut(pair, "="); strings.HasPrefix(name, prefix) && value != "" {
			l.env[name] = value
		}
	}
	l.settings.origins = map[string]Origin{}
	l.readFile()
	for _, f := range fields {
		l.set(f)
	}
	l.unknown()
	l.together()
	if len(l.faults) > 0 {
		return l.settings, l.faults
	}
	return l.settings, nil
}

// Require adds a fault for each of the named settings that has no value, and answers err with them.
func (s *Settings) Require(err error, names ...string) error {
	var faults SettingErrors
	errors.As(err, &faults)
	for _, name := range names {
		f := byName[name]
		if f.of(s).IsZero() && s.origins[name] == FromDefault { // else what was given is wrong, and told already
			faults = append(faults, SettingError{f.env, "is not set; set it, or --" + f.name})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

type loader struct {
	mode     Mode
	from     Sources
	env      map[string]string
	file     map[string]any
	fileName Origin
	settings Settings
	faults   SettingErrors
}

func (l *loader) fault(setting, format string, args ...any) {
	l.faults = append(l.faults, SettingError{setting, fmt.Sprintf(format, args...)})
}

func (l *loader) warn(format string, args ...any) {
	l.settings.warnings = append(l.settings.warnings, fmt.Sprintf(format, args...))
}

// readFile finds the settings file by flag or environment and decodes it.
func (l *loader) readFile() {
	path := cmp.Or(l.from.Flags["config"], l.env[prefix+"CONFIG"])
	if path == "" {
		return
	}
	l.fileName = Origin(path)
	text, err := l.from.Read(path)
	if err == nil {
		l.file, err = l.from.Decode(text)
	}
	if err != nil {
		l.fault(prefix+"CONFIG", "the settings file cannot be read: %v", err)
	}
}

// set gives one setting the value of its strongest source, or its default where that is wrong.
func (l *loader) set(f field) {
	byDefault := f.byDefault(l.mode)
	if err := f.parse(&l.settings, byDefault); err != nil {
		panic("config: the default of " + f.name + " " + err.Error()) // a test loads them all
	}
	text, origin, err := l.find(f)
	l.settings.origins[f.name] = cmp.Or(origin, FromDefault)
	if origin == "" {
		return
	}
	if err == nil {
		if err = f.parse(&l.settings, text); err != nil && !f.secret {
			err = fmt.Errorf("%q %w", text, err)
		}
	}
	if check := l.from.Check[f.name]; err == nil && check != nil {
		err = check(text)
	}
	if err == nil {
		err = f.weak(&l.settings, l.mode)
	}
	if err != nil {
		l.fault(f.at(origin), "%v", err)
		_ = f.parse(&l.settings, byDefault)
	}
}

// find answers the text and origin of a setting, as its strongest source has it; no origin when none has.
func (l *loader) find(f field) (text string, origin Origin, err error) {
	path := ""
	if f.secret {
		path = l.env[f.env+"_FILE"]
	}
	if path != "" && l.env[f.env] != "" {
		l.fault(f.env, "and %s_FILE are both set; unset one of them", f.env)
	}
	if text, ok := l.from.Flags[f.name]; ok {
		return text, FromFlag, nil
	}
	if text := l.env[f.env]; text != "" {
		return text, FromEnvironment, nil
	}
	if path != "" {
		content, err := l.from.Read(path)
		if err != nil {
			err = fmt.Errorf("cannot be read: %w", err)
		}
		return strings.TrimRight(string(content), "\r\n"), Origin(path), err
	}
	if value, ok := l.file[f.name]; ok && f.name != "config" && value != nil {
		text, err := plain(value)
		return text, l.fileName, err
	}
	return "", "", nil
}

// plain is a value of the settings file as the environment would spell it.
func plain(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool:
		if v {
			return "on", nil
		}
		return "off", nil
	case int, int64, uint64:
		return fmt.Sprint(v), nil
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			if _, nested := one.([]any); nested {
				return "", errors.New("is a list of lists; give a plain list")
			}
			var err error
			if parts[i], err = plain(one); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, ","), nil
	default:
		return "", errors.New("must be text, a whole number, true or false, or a list of these")
	}
}

// unknown refuses what is meant for Parlor and is no setting: in the file always, in the environment for Serve.
func (l *loader) unknown() {
	for _, name := range slices.Sorted(maps.Keys(l.file)) {
		if _, ok := byName[name]; !ok || name == "config" {
			l.fault(fmt.Sprintf("%s (%s)", name, l.fileName), "is not a setting%s; correct or remove it", nearest(name, slices.Collect(maps.Keys(byName))))
		}
	}
	if l.mode != Serve {
		return
	}
	var known []string
	for _, f := range fields {
		known = append(known, f.env)
		if f.secret {
			known = append(known, f.env+"_FILE")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		if !slices.Contains(known, name) {
			l.fault(name+" (environment)", "is not a setting%s; correct or unset it", nearest(name, known))
		}
	}
}

// nearest suggests the known name that was probably meant.
func nearest(name string, known []string) string {
	best, distance := "", 4
	slices.Sort(known)
	for _, k := range known {
		if d := edits(strings.ToLower(name), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// edits counts the letters to insert, drop or change between two words (Levenshtein's distance).
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

const redisSchemes = "redis:// rediss:// unix:// redis-cluster:// redis-sentinel://"

// together checks what concerns several settings, or the mode.
func (l *loader) together() {
	s := &l.settings
	if l.mode == Serve {
		if err := s.Require(l.faults, "redis-url", "admin-key", "signing-key"); err != nil {
			l.faults = err.(SettingErrors)
		}
		for _, f := range fields {
			if slices.ContainsFunc(f.guarded(s), func(key Secret) bool { return key != "" && key.guessable() }) {
				l.warn("%s can be guessed; make one with: openssl rand -hex 32", f.env)
			}
		}
		if s.AdminKey != "" && slices.Contains(s.SigningKey, s.AdminKey) {
			l.warn(prefix + "ADMIN_KEY is also a signing key; use two different keys")
		}
		for _, p := range s.TrustedProxies {
			if p.Bits() == 0 {
				l.fault(prefix+"TRUSTED_PROXIES", "%s believes everybody; name the networks of your own proxies", p)
			}
		}
	}
	durability := byName["durability"].at(s.origins["durability"])
	switch {
	case s.Durability == "replica":
		l.fault(durability, "replica is not offered by this release yet; use disk")
	case s.Durability == "memory" && l.mode == Serve:
		l.warn(prefix + "DURABILITY memory forgets acknowledged money when Redis restarts; use disk for money that counts")
	case s.Durability == "disk" && l.mode == Dev && s.RedisURL == "":
		l.fault(durability, "the embedded store writes nothing to disk; use memory, or set %sREDIS_URL", prefix)
	}
	if s.Listen == s.InternalListen && !strings.HasSuffix(s.Listen, ":0") {
		l.fault(prefix+"INTERNAL_LISTEN", "is the public address too; give it another port")
	}
}
