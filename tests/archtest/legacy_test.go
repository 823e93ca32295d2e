package archtest

// house is the old name of project, which script_test.go still uses.
type house = project
