// The version of this package, as recorded in run.started. A test keeps it equal to package.json.
/** The version of this package. */
export const VERSION = '0.1.0'
