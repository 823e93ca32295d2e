// Package moneytest makes games, tokens and balances for the tests of money.
package moneytest
