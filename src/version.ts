// The version of this package, as recorded in run.started. A test keeps it equal to package.json.
export const VERSION = '0.1.0'
