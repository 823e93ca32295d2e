package redisdb

import (
	"strings"
	"testing"
)

func TestAServerBuiltFor32BitsIsRejected(t *testing.T) {
	info := map[string]string{
		"redis_version": "7.0.15", "arch_bits": "64", "role": "master", "maxmemory_policy": "noeviction",
	}
	if problems := checkInfo(info, Requirements{}); len(problems) > 0 {
		t.Fatalf("a good server: %q", problems)
	}
	info["arch_bits"] = "32"
	if problems := checkInfo(info, Requirements{}); len(problems) != 1 || !strings.Contains(problems[0], "32 bits") {
		t.Errorf("%q", problems)
	}
}
