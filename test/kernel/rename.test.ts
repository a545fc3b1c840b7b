// A title: what the log means then, which is nothing.
import { expect, it } from 'vitest'
import { fold } from '../../src/kernel/fold.ts'
import { next } from '../../src/kernel/next.ts'
import { EMPTY } from '../../src/kernel/session.ts'
import { Transcript } from '../../src/kernel/transcript.ts'
import { asking, Logbook } from './logbook.ts'

it('B-TITLE-4: a title wakes nobody, opens no run and changes nothing that is decided, wherever it stands', () => {
  const log = asking()
  log.say('more', 'after')
  log.reply()
  log.settle()
  const now = { now: log.now, epoch: log.epoch }
  const still = new Logbook()
  still.inbox({ type: 'user.rename', id: 'r', title: 'A title' })
  expect(still.next()).toEqual(new Logbook().next())
  for (const events of [log.events, still.events])
    for (let at = 1; at <= events.length; at++) {
      const session = events.slice(0, at).reduce(fold, EMPTY)
      const rename = {
        type: 'user.rename',
        id: 'r2',
        title: 'Another',
        seq: session.seq + 1,
        at: session.at,
        epoch: 0,
      } as const
      const after = fold(session, rename)
      const { since: _since, ...run } = session.run ?? {}
      expect({ ...after, seq: session.seq, run: after.run && { ...after.run, since: null } }).toEqual({
        ...session,
        run: session.run && { ...run, since: null },
      })
      expect(next({ ...after, seq: session.seq }, now)).toEqual(next(session, now))
      const transcript = new Transcript()
      for (const event of [...events.slice(0, at), rename]) transcript.take(event)
      expect(JSON.stringify(transcript.messages)).not.toContain('Another')
    }
})
