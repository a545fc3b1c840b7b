// The program of docs/guide/stores.md, word for word but for this line and its imports. guide-stores.test.ts compares and runs it.
import { Harness, memory, scripted } from '../../src/index.ts'
import type { Store } from '../../src/stores/index.ts'

let commits = 0
const inner = memory()
const store: Store = {
  open: () => inner.open(),
  commit: (writes) => {
    commits += 1
    return inner.commit(writes)
  },
  read: (session, after, limit, bytesMax) => inner.read(session, after, limit, bytesMax),
  claim: (session, worker, ttlMs, process) => inner.claim(session, worker, ttlMs, process),
  release: (session, epoch, trouble) => inner.release(session, epoch, trouble),
  due: (limit, agents) => inner.due(limit, agents),
  card: (session) => inner.card(session),
  list: (filter) => inner.list(filter),
  blob: (hash, of) => inner.blob(hash, of),
  account: (id) => inner.account(id),
  close: () => inner.close(),
}

const harness = new Harness({ model: scripted(['Tulips.']), store })
const { status, text } = await harness.run('Which flowers?')
console.log(status, text, commits > 0)
await harness.close()
