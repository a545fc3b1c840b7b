// A team whose process is killed after each of its commits: another process, which only works, does the rest.
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { share, upTo } from '../runs.ts'
import { COMMITS_MAX, killedAfter, printedBy } from '../runtime/killed.ts'
import { makeFile } from '../stores/folder.ts'

/** Compiled by `npm run build:all`, which the tests begin with. */
const script = fileURLToPath(new URL('../../.build/test/boards/child-team.js', import.meta.url))

function killTeamAfter(commits: number) {
  const file = makeFile()
  return killedAfter(commits, (last) => [script, file, `${last}`])
}

const DONE = 't1 done, t2 done, t3 done, t4 done\n'

it('B-LEAD-4: killed after any commit, a team goes on in another process until every card is done', async () => {
  expect(await printedBy([script, makeFile(), '0'])).toBe(DONE)
  const commits = share(upTo(COMMITS_MAX)).filter((_, i) => i % 3 === 0)
  for (let i = 0; i < commits.length; i += 4) {
    const ends = await Promise.all(commits.slice(i, i + 4).map(killTeamAfter))
    for (const { said } of ends) expect(said).toBe(DONE)
    if (ends.some(({ killed }) => !killed)) return
  }
})
