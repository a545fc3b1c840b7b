// The listeners of a store, as its stores call them.
import { expect, it } from 'vitest'
import { Listeners } from '../../src/stores/plan/listeners.ts'

it('B-NEWS-1: a listener that commits is not called again before it returned, and all hear the news in order', () => {
  const listeners = new Listeners()
  const heard: string[] = []
  let inside = 0
  listeners.addSession('s', (news) => {
    const seq = news?.[0]?.seq ?? 0
    inside += 1
    heard.push(`first ${seq} at depth ${inside}`)
    if (seq === 1) listeners.tell('s', [noteAt(2)])
    inside -= 1
  })
  listeners.addSession('s', (news) => void heard.push(`second ${news?.[0]?.seq}`))
  listeners.tell('s', [noteAt(1)])
  expect(heard).toEqual(['first 1 at depth 1', 'second 1', 'first 2 at depth 1', 'second 2'])
})

function noteAt(seq: number) {
  return { type: 'note.added', kind: 'nudge', text: 'x', seq, at: 1, epoch: 1 } as const
}
