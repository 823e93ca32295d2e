package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parlor-games/parlor/internal/ops/config"
	"github.com/parlor-games/parlor/tests/testkit"
)

const (
	goodKey  = "4f1c9a7e2b8d6035f1c9a7e2b8d60354"
	otherKey = "b8d60354f1c9a7e2b8d603544f1c9a7e"
	storeURL = "redis://u:hunter2@127.0.0.1:6379/0"
)

// source is flags, environment, a decoded settings file and further files, for tests.
type source struct {
	flags map[string]string
	env   []string
	file  map[string]any
	files map[string]string
}

func (s source) load(mode config.Mode) (config.Settings, error) {
	return config.Load(mode, config.Sources{
		Flags: s.flags, Environ: s.env,
		ReadFile: func(path string) ([]byte, error) {
			if path == "parlor.yaml" && s.file != nil {
				return nil, nil
			}
			if text, ok := s.files[path]; ok {
				return []byte(text), nil
			}
			return nil, os.ErrNotExist
		},
		DecodeFile: func([]byte) (map[string]any, error) { return s.file, nil },
	})
}

var complete = []string{"PARLOR_REDIS_URL=" + storeURL, "PARLOR_ADMIN_KEY=" + goodKey, "PARLOR_SIGNING_KEY=" + otherKey}

const (
	archived = "PARLOR_ARCHIVE=file:///archive"
	marked   = "PARLOR_STATE_DIR=/state"
)

func with(env ...string) []string { return append(append([]string{}, complete...), env...) }

func TestDefaults(t *testing.T) {
	s := testkit.Must(source{env: complete}.load(config.ModeServe))(t)
	if s.ListenAddress != "127.0.0.1:8080" || s.InternalListenAddress != "127.0.0.1:9090" ||
		s.RedisURL.Reveal() != storeURL ||
		s.Durability != "disk" || s.RoomShards != 1 || s.LogFormat != "json" || s.LogLevel != slog.LevelInfo ||
		!s.RateLimitsEnabled || s.AccessTTL != 15*time.Minute ||
		s.IdempotencyTTL != 24*time.Hour || s.GCPercent != 25 || s.MemoryLimitMiB != 0 {
		t.Errorf("serve: %+v", s)
	}
	s = testkit.Must(source{}.load(config.ModeDev))(t)
	if s.Durability != "memory" || s.LogFormat != "text" || s.RedisURL != "" {
		t.Errorf("dev: %+v", s)
	}
}

func TestFlagsWinOverEnvironmentOverFileOverDefault(t *testing.T) {
	from := source{env: with("PARLOR_CONFIG=parlor.yaml"), file: map[string]any{}}
	for _, step := range []struct {
		add    func()
		want   string
		origin config.Origin
	}{
		{func() {}, "info", config.FromDefault},
		{func() { from.file["log-level"] = "debug" }, "debug", "parlor.yaml"},
		{func() { from.env = append(from.env, "PARLOR_LOG_LEVEL=warn") }, "warn", config.FromEnvironment},
		{func() { from.flags = map[string]string{"log-level": "error"} }, "error", config.FromFlag},
	} {
		step.add()
		s := testkit.Must(from.load(config.ModeServe))(t)
		for _, e := range s.Entries() {
			if e.Name == "log-level" && (e.Value != step.want || e.Origin != step.origin) {
				t.Errorf("got %s from %s, want %s from %s", e.Value, e.Origin, step.want, step.origin)
			}
		}
	}
}

func TestAFileHasTextNumbersSwitchesAndLists(t *testing.T) {
	s := testkit.Must(source{flags: map[string]string{"config": "parlor.yaml"}, file: map[string]any{
		"redis-url": storeURL, "admin-key": goodKey, "signing-key": []any{otherKey, goodKey + "x"}, "room-shards": 64,
		"rate-limits": false, "idempotency-ttl": "48h", "trusted-proxies": []any{"10.1.2.3/8", "::1"}, "log": nil,
	}}.load(config.ModeServe))(t)
	if len(s.SigningKeys) != 2 || s.RoomShards != 64 || s.RateLimitsEnabled || s.IdempotencyTTL != 48*time.Hour ||
		s.LogFormat != "json" ||
		fmt.Sprint(s.TrustedProxies) != "[10.0.0.0/8 ::1/128]" {
		t.Errorf("%+v", s)
	}
}

func TestWhatLooksLikeAMistakeIsAWarning(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"memory":  {with("PARLOR_DURABILITY=memory", archived, marked), "PARLOR_DURABILITY memory loses"},
		"no mark": {with(archived), "PARLOR_STATE_DIR is not set"},
		"archive": {with(marked), "PARLOR_ARCHIVE is not set"},
		"nothing": {with(archived, marked), ""},
	} {
		s, err := source{env: c.env}.load(config.ModeServe)
		got := strings.Join(s.Warnings(), "\n")
		if err != nil || !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// pieces returns as many networks of 16 million addresses each.
func pieces(count int) string {
	list := make([]string, count)
	for i := range list {
		list[i] = fmt.Sprintf("%d.0.0.0/8", i)
	}
	return strings.Join(list, ",")
}

func TestEveryErrorIsReportedWithItsCorrection(t *testing.T) {
	environ := func(env ...string) source { return source{env: env} }
	set := func(env ...string) source { return source{env: with(env...)} }
	settingsFile := func(file map[string]any) source {
		return source{env: with("PARLOR_CONFIG=parlor.yaml"), file: file}
	}
	for name, c := range map[string]struct {
		from source
		mode config.Mode
		want []string // one for each error, in order: the start of its line … and a part of it
	}{
		"nothing set": {source{}, config.ModeServe, []string{
			"PARLOR_REDIS_URL: …is not set", "PARLOR_ADMIN_KEY: …is not set", "PARLOR_SIGNING_KEY: …is not set",
		}},
		"a short key": {environ(complete[0], "PARLOR_ADMIN_KEY=short", complete[2]), config.ModeServe, []string{
			"PARLOR_ADMIN_KEY (environment): …has 5 bytes",
		}},
		"a key of dev": {
			environ(complete[0], complete[1], "PARLOR_SIGNING_KEY="+goodKey+"1,"+config.DevKeyPrefix+goodKey),
			config.ModeServe,
			[]string{"PARLOR_SIGNING_KEY …made by parlor dev"},
		},
		"weak keys in dev":   {environ("PARLOR_ADMIN_KEY=x"), config.ModeDev, nil},
		"a short key in dev": {environ("PARLOR_SIGNING_KEY=x"), config.ModeDev, []string{"PARLOR_SIGNING_KEY …has 1 bytes"}},
		"a wrong scheme": {
			environ("PARLOR_REDIS_URL=http://u:hunter2@h", complete[1], complete[2]),
			config.ModeServe,
			[]string{
				"PARLOR_REDIS_URL (environment): …must start with one of: redis://",
			},
		},
		"no such durability": {set("PARLOR_DURABILITY=paper"), config.ModeServe, []string{
			`PARLOR_DURABILITY (environment): …"paper" is not one of: memory, disk, replica`,
		}},
		"replica in memory": {source{flags: map[string]string{"durability": "replica"}}, config.ModeDev, []string{
			"--durability (flag): …use memory",
		}},
		"disk in memory": {source{flags: map[string]string{"durability": "disk"}}, config.ModeDev, []string{
			"--durability (flag): …use memory",
		}},
		"bounds": {
			set("PARLOR_ROOM_SHARDS=0", "PARLOR_GC_PERCENT=5", "PARLOR_MEMORY_LIMIT_MIB=-1", "PARLOR_IDEMPOTENCY_TTL=1h",
				"PARLOR_STORE_WAIT=-1s", "PARLOR_RATE_LIMITS=maybe", "PARLOR_LOG_LEVEL=loud"),
			config.ModeServe,
			[]string{
				"PARLOR_ROOM_SHARDS …from 1 to 1024", "PARLOR_LOG_LEVEL …debug, info, warn, error",
				"PARLOR_RATE_LIMITS …neither on nor off", "PARLOR_IDEMPOTENCY_TTL …from 24h to 720h",
				"PARLOR_STORE_WAIT …from 0s to 10m", "PARLOR_GC_PERCENT …from 10 to 1000",
				"PARLOR_MEMORY_LIMIT_MIB …from 0 to 1048576",
			},
		},
		"addresses": {set("PARLOR_LISTEN=8080", "PARLOR_INTERNAL_LISTEN=h:70000"), config.ModeServe, []string{
			"PARLOR_LISTEN …host:port", "PARLOR_INTERNAL_LISTEN …host:port",
		}},
		"one address": {set("PARLOR_LISTEN=:9090", "PARLOR_INTERNAL_LISTEN=:9090"), config.ModeServe, []string{
			"PARLOR_INTERNAL_LISTEN: …another port",
		}},
		"proxies": {set("PARLOR_TRUSTED_PROXIES=10.0.0.0/33"), config.ModeServe, []string{
			"PARLOR_TRUSTED_PROXIES …list of networks",
		}},
		"all are proxies": {set("PARLOR_TRUSTED_PROXIES=0.0.0.0/0"), config.ModeServe, []string{
			"PARLOR_TRUSTED_PROXIES: …0.0.0.0/0 trusts a large part",
		}},
		"all are proxies, in halves": {set("PARLOR_TRUSTED_PROXIES=0.0.0.0/1,128.0.0.0/1"), config.ModeServe, []string{
			"PARLOR_TRUSTED_PROXIES: …0.0.0.0/1 trusts", "PARLOR_TRUSTED_PROXIES: …128.0.0.0/1 trusts",
		}},
		"all are proxies, as IPv6": {set("PARLOR_TRUSTED_PROXIES=::ffff:0.0.0.0/96,2000::/3"), config.ModeServe, []string{
			"PARLOR_TRUSTED_PROXIES: …0.0.0.0/0 trusts", "PARLOR_TRUSTED_PROXIES: …2000::/3 trusts",
		}},
		"all are proxies, in pieces": {set("PARLOR_TRUSTED_PROXIES=" + pieces(128)), config.ModeServe, []string{
			"PARLOR_TRUSTED_PROXIES: …the networks together",
		}},
		"a few large networks": {set("PARLOR_TRUSTED_PROXIES=" + pieces(127) + ",fc00::/7,fe80::/16"), config.ModeServe, nil},
		"a repeated character": {
			environ(complete[0], "PARLOR_ADMIN_KEY="+strings.Repeat("a", 40), complete[2]), config.ModeServe,
			[]string{"PARLOR_ADMIN_KEY (environment): …can be guessed: it has only 1 different"},
		},
		"a repeated text": {
			environ(complete[0], "PARLOR_ADMIN_KEY="+goodKey+","+strings.Repeat("kangaroo-9", 4), complete[2]), config.ModeServe,
			[]string{"PARLOR_ADMIN_KEY (environment): …can be guessed: it repeats 10 characters"},
		},
		"a first server key that is not random": {
			set("PARLOR_FIRST_GAME_KEY=psk_1_" + strings.Repeat("kangaroo-9", 5)), config.ModeServe,
			[]string{"PARLOR_FIRST_GAME_KEY (environment): …can be guessed: it repeats 10 characters"},
		},
		"a short first server key": {
			set("PARLOR_FIRST_GAME_KEY=psk_1_" + goodKey[:31]), config.ModeServe,
			[]string{"PARLOR_FIRST_GAME_KEY (environment): …has 31 bytes"},
		},
		"a first server key": {set("PARLOR_FIRST_GAME_KEY=psk_1_" + goodKey), config.ModeServe, nil},
		"a copied key": {
			environ(complete[0], complete[1], "PARLOR_SIGNING_KEY=ChangeMe-"+otherKey), config.ModeServe,
			[]string{"PARLOR_SIGNING_KEY (environment): …can be guessed: it has a word"},
		},
		"the example of everybody": {
			environ(complete[0], "PARLOR_ADMIN_KEY=changeme-changeme-changeme-changeme", complete[2]), config.ModeServe,
			[]string{"PARLOR_ADMIN_KEY (environment): …can be guessed: it has a word"},
		},
		"one key for both": {
			environ(complete[0], complete[1], "PARLOR_SIGNING_KEY="+otherKey+","+goodKey), config.ModeServe,
			[]string{"PARLOR_ADMIN_KEY: …is also a signing key"},
		},
		"a guessed key in dev": {environ("PARLOR_SIGNING_KEY=" + strings.Repeat("a", 40)), config.ModeDev, nil},
		"keys as flags": {
			source{env: complete, flags: map[string]string{"admin-key": goodKey, "signing-key": otherKey}},
			config.ModeServe,
			[]string{
				"--admin-key (flag): …set PARLOR_ADMIN_KEY, or PARLOR_ADMIN_KEY_FILE",
				"--signing-key (flag): …set PARLOR_SIGNING_KEY, or PARLOR_SIGNING_KEY_FILE",
			},
		},
		"a key as a flag in dev": {
			source{flags: map[string]string{"admin-key": goodKey}},
			config.ModeDev,
			[]string{"--admin-key (flag): …PARLOR_ADMIN_KEY"},
		},
		"a password as a flag": {
			source{env: complete[1:], flags: map[string]string{"redis-url": storeURL}},
			config.ModeServe,
			[]string{"--redis-url (flag): …set PARLOR_REDIS_URL, or PARLOR_REDIS_URL_FILE"},
		},
		"a password of sentinels as a flag": {
			source{env: complete[1:], flags: map[string]string{
				"redis-url": "redis-sentinel://a:1/m?sentinelPassword=hunter2",
			}},
			config.ModeServe,
			[]string{"--redis-url (flag): …set PARLOR_REDIS_URL"},
		},
		"a store without a password as a flag": {
			source{env: complete[1:], flags: map[string]string{"redis-url": "rediss://parlor@127.0.0.1:6379/0"}},
			config.ModeServe, nil,
		},
		"any server as the store": {
			environ("PARLOR_REDIS_URL=rediss://u:hunter2@h:1/0?db=1&skip_verify=true", complete[1], complete[2]),
			config.ModeServe,
			[]string{"PARLOR_REDIS_URL: …skip_verify accepts any server"},
		},
		"any server as the store, by another spelling": {
			environ("PARLOR_REDIS_URL=rediss-cluster://h:1?skip_verify=1", complete[1], complete[2]), config.ModeServe,
			[]string{"PARLOR_REDIS_URL: …skip_verify accepts any server"},
		},
		"the right server as the store": {
			environ("PARLOR_REDIS_URL=rediss://h:1?skip_verify=false", complete[1], complete[2]), config.ModeServe, nil,
		},
		"any server as the store of dev": {
			environ("PARLOR_REDIS_URL=rediss://h:1?skip_verify=true"), config.ModeDev, nil,
		},
		"an unknown name": {set("PARLOR_LISTNE=:1"), config.ModeServe, []string{
			"PARLOR_LISTNE (environment): …is not a setting; correct",
		}},
		"unknown in dev": {environ("PARLOR_LISTNE=:1"), config.ModeDev, nil},
		"an unknown key": {settingsFile(map[string]any{"redis_url": "x", "config": "y"}), config.ModeServe, []string{
			"config (parlor.yaml)…", "redis_url (parlor.yaml): …is not a setting; correct",
		}},
		"a nested value": {settingsFile(map[string]any{"log": map[string]any{"level": 1}}), config.ModeServe, []string{
			"PARLOR_LOG (parlor.yaml): …must be text",
		}},
		"no settings file": {set("PARLOR_CONFIG=absent.yaml"), config.ModeServe, []string{"PARLOR_CONFIG: …cannot be read"}},
		"no secret file": {environ(complete[0], complete[1], "PARLOR_SIGNING_KEY_FILE=absent"), config.ModeServe, []string{
			"PARLOR_SIGNING_KEY (absent): …cannot be read",
		}},
		"a secret twice": {
			source{env: with("PARLOR_ADMIN_KEY_FILE=key"), files: map[string]string{"key": goodKey}},
			config.ModeServe,
			[]string{"PARLOR_ADMIN_KEY: …and PARLOR_ADMIN_KEY_FILE are both set"},
		},
		"no file for plain": {set("PARLOR_LISTEN_FILE=x"), config.ModeServe, []string{
			"PARLOR_LISTEN_FILE (environment)…is not a setting",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.from.load(c.mode)
			var errs config.SettingErrors
			errors.As(err, &errs)
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(c.want) || len(errs) != len(c.want) {
				t.Fatalf("got %d lines, want %d:\n%v", len(lines), len(c.want), err)
			}
			for i, want := range c.want {
				start, part, _ := strings.Cut(want, "…")
				if !strings.HasPrefix(lines[i], start) || !strings.Contains(lines[i], part) {
					t.Errorf("line %d is\n\t%s\nwant\n\t%s", i, lines[i], want)
				}
			}
			if strings.Contains(fmt.Sprint(err), "hunter2") || strings.Contains(fmt.Sprint(err), goodKey) {
				t.Errorf("a secret is printed: %v", err)
			}
		})
	}
}

func TestEntriesAreSpelledAsTheyWereSet(t *testing.T) {
	s, err := source{
		env: with("PARLOR_CONFIG=parlor.yaml", "PARLOR_STORE_WAIT=90s", "PARLOR_ROOM_SHARDS=0"),
		file: map[string]any{
			"rate-limits": false, "trusted-proxies": []any{"10.1.2.3/8", "::1"},
		},
	}.load(
		config.ModeServe,
	)
	if err == nil {
		t.Fatal("room-shards 0 is not an error")
	}
	got := map[string]string{}
	for _, e := range s.Entries() {
		got[e.Name] = e.Value
	}
	for name, want := range map[string]string{
		"store-wait": "90s", "rate-limits": "false", "trusted-proxies": "10.1.2.3/8,::1", "log": "json",
		"admin-key":   "[redacted]",
		"room-shards": "1", // the default in place of what is wrong
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestASecretComesFromAFileWithoutItsLastNewline(t *testing.T) {
	s := testkit.Must(source{
		env:   []string{complete[0], "PARLOR_ADMIN_KEY_FILE=/run/admin", "PARLOR_SIGNING_KEY_FILE=/run/signing"},
		files: map[string]string{"/run/admin": goodKey + "\r\n", "/run/signing": otherKey + "," + otherKey + "2\n"},
	}.load(config.ModeServe))(t)
	if len(s.AdminKeys) != 1 || s.AdminKeys[0].Reveal() != goodKey ||
		len(s.SigningKeys) != 2 || s.SigningKeys[1].Reveal() != otherKey+"2" {
		t.Errorf("read %d admin keys and %d signing keys", len(s.AdminKeys), len(s.SigningKeys))
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	s := testkit.Must(source{env: complete}.load(config.ModeServe))(t)
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("settings", "s", s, "key", s.RedisURL, "keys", s.SigningKeys)
	printed := []string{fmt.Sprint(s), fmt.Sprintf("%+v %#v %q", s, s, s.AdminKeys), fmt.Sprint(s.Entries()), log.String()}
	for _, text := range printed {
		for _, secret := range []string{goodKey, otherKey, "hunter2"} {
			if strings.Contains(text, secret) {
				t.Errorf("a secret is in: %s", text)
			}
		}
	}
	if !strings.Contains(fmt.Sprint(s.Entries()), "[redacted]") {
		t.Error("a secret that is set does not show as set")
	}
}

func TestRequireReportsWhatACommandNeeds(t *testing.T) {
	s, err := source{}.load(config.ModeTool)
	if err = s.Require(err, "redis-url"); err == nil ||
		err.Error() != "PARLOR_REDIS_URL: is not set; set it, or --redis-url" {
		t.Errorf("got %v", err)
	}
	if err = s.Require(nil, "admin-key"); err == nil ||
		err.Error() != "PARLOR_ADMIN_KEY: is not set; set it, or PARLOR_ADMIN_KEY_FILE" {
		t.Errorf("got %v", err)
	}
	s, err = source{env: complete}.load(config.ModeTool)
	if err = s.Require(err, "redis-url"); err != nil {
		t.Error(err)
	}
}

func TestTheVariablesOfTheContractExist(t *testing.T) {
	text := config.ReferenceMarkdown() + config.ExampleEnv()
	for _, name := range []string{
		"PARLOR_LISTEN", "PARLOR_INTERNAL_LISTEN", "PARLOR_REDIS_URL", "PARLOR_ADMIN_KEY",
		"PARLOR_SIGNING_KEY", "PARLOR_DURABILITY", "PARLOR_ROOM_SHARDS", "PARLOR_LOG",
	} {
		if !strings.Contains(text, "`"+name+"`") || !strings.Contains(text, name+"=") {
			t.Errorf("%s is missing in the reference or the example", name)
		}
	}
	for _, e := range config.EntriesWithoutValues() {
		if e.Doc == "" {
			t.Errorf("%s has no doc", e.Name)
		}
	}
}
