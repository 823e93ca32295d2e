package rooms

import (
	"math/rand/v2"
	"strings"
)

// codeLetters has no digit or letter that is taken for another, and no vowels, so that no words appear.
const codeLetters = "23456789BCDFGHJKMNPQRSTVWXZ"

// codeLength letters are 27^7, ten thousand million codes over all homes.
const codeLength = 7

const codes = 27 * 27 * 27 * 27 * 27 * 27 * 27

// newCode makes a code that tells the number of its room's home: read in base 27, it is home modulo homes+1.
func newCode(home, homes int) string {
	step := int64(homes + 1)
	n := rand.Int64N(codes/step)*step + int64(home)
	var letters [codeLength]byte
	for i := codeLength - 1; i >= 0; i-- {
		letters[i] = codeLetters[n%int64(len(codeLetters))]
		n /= int64(len(codeLetters))
	}
	return string(letters[:])
}

// readCode answers a code in its one spelling and the number of the home that it tells; small letters are read as capitals.
func readCode(text string, homes int) (code string, home int, ok bool) {
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
	return code, int(n % int64(homes+1)), true
}
