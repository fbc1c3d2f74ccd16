// Package ports computes the settings of end ports, of single links and of the ports
// between switches from a policy.
//
// In: a snapshot and settings. Out: values entered in an observed.Desired, and
// warnings for people. Package qos computes what all links have in common, and package
// partition the P_Key tables.
package ports
