// A server's tokens, changed as fast as it goes: each is made, and all but the last are dropped. Told to hold, it begins a change and
// never ends it. Run by tokens.test.ts.
import { Fault } from '../../src/kernel/index.ts'
import { withFileLock } from '../../src/stores/sqlite/file-lock.ts'
import { TokenRegistry } from '../../src/server/token-registry.ts'

const [path = '', name = ''] = process.argv.slice(2)
const tokens = new TokenRegistry(path, 'owner', withFileLock)
process.stdout.write(`${tokens.own}\n`)
if (name === 'hold')
  withFileLock(`${path}.lock`, () => {
    process.stdout.write('holds\n')
    for (;;);
  })
for (let i = 0; i < 30; i += 1) {
  done(() => tokens.make({ name: `${name}-${i}`, role: 'viewer' }, i))
  if (i > 0) done(() => tokens.drop(`${name}-${i - 1}`))
}

/** Four processes that change it without a pause can keep one of them out for longer than it waits. */
function done(change: () => unknown): void {
  for (let tries = 1; ; tries++)
    try {
      return void change()
    } catch (error) {
      if (!(error instanceof Fault && error.code === 'store_busy' && tries < 20)) throw error
    }
}
