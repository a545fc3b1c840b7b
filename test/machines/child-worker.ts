// One worker of `npm run machines`: it drives whatever is due in the store until it is killed, or left alone by the program that started
// it. Its arguments are its name and the bank's book; the store is TERRET_STORE.
import { postgres } from '../../src/stores/postgres/postgres.ts'
import { harnessOn } from './agents.ts'

const [name = '', book = ''] = process.argv.slice(2)
const store = postgres(process.env['TERRET_STORE'] ?? '')
// The other end of this pipe is the program that started it.
process.stdin.on('end', () => process.exit()).resume()
await store.open()
process.stdout.write('up\n')
await harnessOn(store, book, name).work({ width: 8 })
