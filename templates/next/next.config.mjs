// terret stays out of the bundle: it loads a native SQLite and files beside its code, which a bundler would leave behind. Without this
// line each request is answered with `store_unsupported`.
export default { serverExternalPackages: ['terret'] }
