// For the processes that tests kill: a store that waits to be killed after so many commits, and how the next process goes on.
import type { Harness, Result, CompleteStore } from '../../src/index.ts'

/** After the commit with this number it says so and goes no further; 0 never does. */
export function killable(inner: CompleteStore, last: number): CompleteStore {
  let commits = 0
  const commit: CompleteStore['commit'] = async (writes) => {
    const receipts = await inner.commit(writes)
    commits += 1
    if (commits !== last) return receipts
    process.stdout.write('here\n')
    return new Promise(() => setInterval(() => {}, 60_000))
  }
  return new Proxy(inner, {
    get(target, name) {
      if (name === 'commit') return commit
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

/** The first process opens the session; those that follow go on with it. */
export async function startedOrResumed(harness: Harness, id: string, task: string): Promise<Result> {
  const session = harness.session(id)
  if ((await session.events({ limit: 1 })).events.length > 0) return session.run()
  await harness.open({ id })
  return session.run(task)
}
