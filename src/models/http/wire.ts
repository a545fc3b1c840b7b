// What calls need and programs that only name a model do not, as one file to load. No code of its own.
export { DEADLINES, exchange, OWN_DEADLINES } from './exchange.ts'
export { fetchTransport, httpTransport } from './transport.ts'
