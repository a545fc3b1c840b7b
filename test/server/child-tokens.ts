// A server's tokens, changed as fast as it goes: each is made, and all but the last are dropped. Run by tokens.test.ts.
import { Tokens } from '../../src/server/tokens.ts'

const [path = '', name = ''] = process.argv.slice(2)
const tokens = new Tokens(path, 'owner')
process.stdout.write(`${tokens.own}\n`)
for (let i = 0; i < 30; i += 1) {
  tokens.make({ name: `${name}-${i}`, role: 'viewer' }, i)
  if (i > 0) tokens.drop(`${name}-${i - 1}`)
}
