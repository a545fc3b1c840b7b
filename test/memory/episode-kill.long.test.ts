// A process that is killed before its run has its episode: the next process writes it.
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { printedBy } from '../runtime/killed.ts'
import { makeFolder } from '../stores/folder.ts'

it.each(['settled', 'written'])(
  'B-EPISODE-8: `kill -9` after a run (%s): the next process writes its episode, once',
  async (at) => {
    const folder = makeFolder()
    const child = fileURLToPath(new URL('../../.build/test/memory/child-episode.js', import.meta.url))
    const args = (stop: string, runs: number) => [child, folder, stop, String(runs)]
    expect(await printedBy(args(at, 1))).toBe('here\n')
    const one = [{ asked: 'Where is staging?', answer: 'It is at 10.0.0.7.' }]
    expect(JSON.parse(await printedBy(args('', 0)))).toEqual(one)
    expect(JSON.parse(await printedBy(args('', 0)))).toEqual(one)
  },
  60_000,
)
