package backup

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/parlor-games/parlor/tests/testkit"
)

// newCopy returns an RDB file with its sum, which is that of Redis for what comes before.
func newCopy(body string) []byte {
	sum := newRDBSum()
	_, _ = sum.Write([]byte(body))
	return binary.LittleEndian.AppendUint64([]byte(body), sum.Sum64())
}

// checkParts passes a file on in parts of a size.
func checkParts(file []byte, size int) error {
	var out bytes.Buffer
	c := newChecker(&out)
	for rest := file; len(rest) > 0; {
		n := min(size, len(rest))
		_, _ = c.Write(rest[:n])
		rest = rest[n:]
	}
	return c.end()
}

// The value is the check value of the CRC-64 of Redis, of its own tests.
func TestTheSumOfACopyIsTheOneOfRedis(t *testing.T) {
	sum := newRDBSum()
	_, _ = sum.Write([]byte("123456789"))
	if got := sum.Sum64(); got != 0xe9c6d914c4b8d9ca {
		t.Errorf("%x", got)
	}
}

func TestACopyWithAnotherByteIsDamaged(t *testing.T) {
	file := newCopy(rdbMagic + "0011" + strings.Repeat("some data ", 20) + "\xff")
	for _, size := range []int{1, 7, 8, 9, len(file)} {
		testkit.Check(t, checkParts(file, size), "in parts of %d", size)
	}
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 1
		if checkParts(damaged, 64) == nil {
			t.Errorf("byte %d of %d is another one, and nobody notices", i, len(file))
		}
	}
	unsummed := append(bytes.Clone(file[:len(file)-rdbSumSize]), make([]byte, rdbSumSize)...)
	testkit.Report(t, checkParts(unsummed, 64), "of a server that makes no sums")
	other := newCopy("VALKEY0011 some data\xff") // its sum is right
	for _, text := range []string{"", "REDI", rdbMagic, "REDIS00", string(other)} {
		if checkParts([]byte(text), 64) == nil {
			t.Errorf("%q counts as a copy", text)
		}
	}
}
