// What the doctor says about a transcript. The command is test/cli/doctor.test.ts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Harness, memory, scripted } from '../../src/index.ts'
import { examine, examineLog } from '../../src/replay.ts'
import type { Message } from '../../src/kernel/transcript.ts'
import { userSays } from './context.ts'
import { logs } from './logs.ts'

const asks = (seq: number, ...ids: readonly string[]): Message => {
  const calls = ids.map((id, i) => ({ key: `${seq}.${i}`, id, tool: 'look', args: {} }))
  return { role: 'assistant', seq, parts: [], calls }
}
const result = (seq: number, call: string): Message => {
  return { role: 'tool', seq, call, id: '', tool: 'look', ok: true, content: 'seen' }
}

describe('the doctor', () => {
  it('B-DOCTOR-1: what is wrong is told in one sentence each, with the event it stands in', () => {
    const { findings } = examine([
      userSays(''),
      userSays('Look.', 2),
      asks(3, '', 'b'),
      result(4, '3.0'),
      userSays('Well?', 5),
    ])
    expect(findings.map(({ text }) => text)).toEqual([
      'Event 1: it says nothing. It is left out.',
      'Event 3: call 3.0 has no id. It is sent with one of ours.',
      'Event 3: call 3.1 has no result. The model is told that it is not in the record.',
    ])
  })

  it('B-DOCTOR-2: for each protocol it says whether the transcript can be sent as it is, or mended', () => {
    const sent = (...messages: readonly Message[]) =>
      examine(messages).protocols.map(({ protocol, as }) => [protocol, as])
    const all = (as: string) => ['messages', 'responses', 'chat'].map((protocol) => [protocol, as])
    expect(sent(userSays('Hello.'))).toEqual(all('recorded'))
    expect(sent()).toEqual(all('nothing'))
    expect(sent(userSays('Look.'), asks(2, ''), result(3, '2.0'))).toEqual(all('mended'))
    const long = [userSays('Look.'), asks(2, 'x'.repeat(50)), result(3, '2.0')]
    expect(sent(...long)).toEqual([...all('recorded').slice(0, 2), ['chat', 'mended']])
    expect(examine(long).findings).toMatchObject([{ what: 'odd_id', protocols: ['chat'] }])
  })

  it('B-DOCTOR-3: the view that it gives has nothing wrong with it, whatever the log was', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const { view } = examine(log)
        expect(examine(view).findings.filter(({ protocols }) => protocols.length === 3)).toEqual([])
        expect(examine(view).view).toEqual(view)
      }),
    )
  })

  it('B-DOCTOR-4: a call that is not over yet, and a result that was not shown yet, are nothing wrong', async () => {
    expect(examine([userSays('Look.'), asks(2, 'a', 'b'), result(3, '2.1')])).toMatchObject({
      findings: [],
      open: ['2.0'],
    })
    const store = memory()
    const harness = new Harness({ model: scripted([{ calls: [{ tool: 'gone', id: 'a' }] }, 'Done.']), store })
    const { sessionId } = await harness.run('Look.')
    const { events } = await harness.session(sessionId).events()
    for (let end = 0; end <= events.length; end++) expect(examineLog(events.slice(0, end)).findings).toEqual([])
    const answered = events.slice(0, events.findIndex(({ type }) => type === 'agent.tool_result') + 1)
    expect(examineLog(answered.slice(0, -1)).open).toHaveLength(1)
    expect(examineLog(answered).open).toEqual([])
    expect(examineLog(events).view.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
    await harness.close()
    await store.close()
  })
})
