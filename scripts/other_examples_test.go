package scripts_test

var otherExamples []example
