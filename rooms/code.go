package rooms

import (
	"math/rand/v2"
	"strings"
)

// codeLetters has no digit or letter that is mistaken for another, and no vowels, so that no words
// appear.
const codeLetters = "23456789BCDFGHJKMNPQRSTVWXZ"

// codeLength letters make 27^7 codes, about ten thousand million over all shards.
const codeLength = 7

const codeCount = 27 * 27 * 27 * 27 * 27 * 27 * 27

// newCode returns a random code that contains the number of its room's shard: read in base 27, the
// code is that number modulo shards+1.
func newCode(shard, shards int) string {
	step := int64(shards + 1)
	n := rand.Int64N(codeCount/step)*step + int64(shard)
	var letters [codeLength]byte
	for i := codeLength - 1; i >= 0; i-- {
		letters[i] = codeLetters[n%int64(len(codeLetters))]
		n /= int64(len(codeLetters))
	}
	return string(letters[:])
}

// parseCode returns a code in upper case and the number of its shard. It accepts lower case.
func parseCode(text string, shards int) (code string, shard int, ok bool) {
	code = strings.ToUpper(text)
	if len(code) != codeLength {
		return "", 0, false
	}
	var n int64
	for i := range len(code) {
		digit := strings.IndexByte(codeLetters, code[i])
		if digit < 0 {
			return "", 0, false
		}
		n = n*int64(len(codeLetters)) + int64(digit)
	}
	return code, int(n % int64(shards+1)), true
}
