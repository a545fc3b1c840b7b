// A hook that looks at the answer before it is one: it blocks it, replaces it, or has the model correct it.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Hook, HookEvents } from '../../src/index.ts'
import { stage, storages } from './hooks-stage.ts'

const SECRET = 'The password is swordfish.'
type Word = ReturnType<Extract<Hook, { type: 'before_answer' }>['run']>
const guard = (run: (event: HookEvents['before_answer']) => Word): Hook => ({ type: 'before_answer', run })
const blocks = guard(({ text }) => (text.includes('swordfish') ? { block: 'It tells a password.' } : undefined))

describe('before_answer', () => {
  it.each(Object.entries(storages))(
    'B-OUTGUARD-1: on %s a blocked answer ends the run as halted, and is written nowhere',
    async (_, storage) => {
      const script = [{ text: SECRET, reasoning: 'swordfish, I think' }, 'Ask the owner.']
      const { harness, requests } = stage(script, [blocks], { storage })
      const session = await harness.open()
      const result = await session.run('What is it?')
      expect(result).toMatchObject({ status: 'halted', stopReason: 'halted', reason: 'It tells a password.', said: '' })
      expect(result.text).toBe('It tells a password.')
      expect(JSON.stringify([result, await session.events(), await session.messages()])).not.toContain('swordfish')
      const reply = (await session.events()).events.find(({ type }) => type === 'agent.message')
      expect(reply).toMatchObject({ guard: 'block', verdict: { type: 'stop', reason: 'It tells a password.' } })
      expect(await session.run('And now?')).toMatchObject({ status: 'completed', text: 'Ask the owner.' })
      expect(JSON.stringify(requests[1]?.messages)).toContain('withheld')
    },
  )

  it('B-OUTGUARD-2: a replaced answer is the answer for the caller, the log and the next request', async () => {
    const masks = guard(({ text }) => ({ replace: text.replace('swordfish', '***') }))
    const signs = guard(({ text, output }) => (text === output ? { replace: `${text} Bye.` } : { block: 'odd' }))
    const { harness, requests } = stage([{ text: SECRET, reasoning: 'swordfish' }, 'Yes.'], [masks, signs])
    const session = await harness.open()
    const result = await session.run('What is it?')
    expect(result).toMatchObject({
      status: 'completed',
      text: 'The password is ***. Bye.',
      output: 'The password is ***. Bye.',
    })
    await session.run('Sure?')
    expect(JSON.stringify([requests[1]?.messages, await session.events()])).not.toContain('swordfish')
    expect(JSON.stringify(requests[1]?.messages)).toContain('The password is ***. Bye.')
  })

  it('B-OUTGUARD-3: an answer that must be corrected is asked for again, as often as outputRetries says, and is no answer', async () => {
    const again = guard(({ text }) => (text.includes('swordfish') ? { retry: 'Do not name passwords.' } : undefined))
    const good = stage([SECRET, 'Ask the owner.'], [again])
    expect(await good.harness.run('What is it?')).toMatchObject({ status: 'completed', text: 'Ask the owner.' })
    expect(JSON.stringify(good.requests[1]?.messages.at(-1))).toContain('Do not name passwords.')
    const bad = stage([SECRET, SECRET], [again])
    const result = await bad.harness.run('What is it?')
    expect(result).toMatchObject({ status: 'failed', stopReason: 'output_validation_failed', text: '' })
  })

  it('B-OUTGUARD-4: a guard that throws ends the run, also where it is not strict, and so does an invalid answer of a guard', async () => {
    const throws = guard(() => {
      throw new Error('no service')
    })
    const broken = await stage([SECRET], [throws]).harness.run('What is it?')
    expect(broken).toMatchObject({ status: 'failed', stopReason: 'hook_error', text: '' })
    expect(JSON.stringify(broken)).not.toContain('swordfish')
    const odd = guard(() => ({ blok: 'typo' }) as unknown as Word)
    expect(await stage([SECRET], [odd]).harness.run('What is it?')).toMatchObject({ status: 'halted' })
    const wrong = guard(() => ({ replace: { a: 1 } }))
    const { stopReason } = await stage([SECRET], [wrong]).harness.run('What is it?')
    expect(stopReason).toBe('hook_error')
  })

  const schema = z.object({ word: z.string() })
  it.each(['tool', 'native', 'prompted'] as const)(
    'B-OUTGUARD-5: with output mode %s it sees the value, and what replaces it must fit',
    async (mode) => {
      const said = (word: string) => {
        return mode === 'tool' ? { calls: [{ tool: 'final_result', args: { word } }] } : JSON.stringify({ word })
      }
      const output = { schema, mode: mode === 'native' ? 'prompted' : mode } as const
      const seen: unknown[] = []
      const masks = guard(({ output: value }) => {
        seen.push(value)
        return { replace: { word: '***' } }
      })
      const masked = stage([said('swordfish')], [masks], { output })
      const session = await masked.harness.open()
      expect(await session.run('Which?')).toMatchObject({ status: 'completed', output: { word: '***' } })
      expect(seen).toEqual([{ word: 'swordfish' }])
      expect(JSON.stringify(await session.events())).not.toContain('swordfish')
      const unfit = stage([said('swordfish')], [guard(() => ({ replace: { other: 1 } }))], { output })
      expect(await unfit.harness.run('Which?')).toMatchObject({ status: 'failed', stopReason: 'hook_error' })
      const again = guard(({ text }) => (text.includes('swordfish') ? { retry: 'Another word.' } : undefined))
      const asked = stage([said('swordfish'), said('tuna')], [again], { output })
      expect(await asked.harness.run('Which?')).toMatchObject({ status: 'completed', output: { word: 'tuna' } })
      expect(JSON.stringify(asked.requests[1]?.messages)).toContain('Another word.')
      const blocked = stage([said('swordfish')], [blocks], { output })
      const result = await blocked.harness.run('Which?')
      expect(result.status).toBe('halted')
      expect(JSON.stringify(result)).not.toContain('swordfish')
    },
  )

  it('B-OUTGUARD-6: a stream settles without what was blocked, and its text ends with what replaces it', async () => {
    const deltas = ['The password ', 'is swordfish.']
    const blocked = stage([{ deltas }], [blocks]).harness.stream('What is it?')
    let text = ''
    for await (const piece of blocked.text) text += piece
    expect(text).toBe(SECRET)
    expect(await blocked.result).toMatchObject({ status: 'halted', text: 'It tells a password.' })
    const replaced = stage([{ deltas }], [guard(() => ({ replace: 'No.' }))]).harness.stream('What is it?')
    text = ''
    for await (const piece of replaced.text) text += piece
    expect(text).toBe(`${SECRET}\n\nNo.`)
    expect(await replaced.result).toMatchObject({ status: 'completed', text: 'No.' })
    const events = stage([{ deltas }], [blocks]).harness.stream('What is it?')
    const replies: unknown[] = []
    for await (const event of events) if (event.type === 'agent.message') replies.push(event)
    expect(JSON.stringify(replies)).not.toContain('swordfish')
  })

  it('B-OUTGUARD-7: it is asked of the answer alone, for the agents it names, children among them', async () => {
    const seen: string[] = []
    const watches: Hook = {
      type: 'before_answer',
      agents: ['reader'],
      run: ({ agent, text }) => {
        seen.push(`${agent}: ${text}`)
        return { block: 'Not from a child.' }
      },
    }
    const call = { calls: [{ tool: 'subagent', args: { agent: 'reader', task: 'Read it.' } }] }
    const subagents = { reader: { description: 'Reads.' } }
    const { harness, requests } = stage([call, SECRET, 'I cannot say.'], [watches], { subagents })
    expect(await harness.run('What is it?')).toMatchObject({ status: 'completed', text: 'I cannot say.' })
    expect(seen).toEqual([`reader: ${SECRET}`])
    expect(JSON.stringify(requests.at(-1)?.messages)).not.toContain('swordfish')
    expect(JSON.stringify(requests.at(-1)?.messages)).toContain('Not from a child.')
  })

  it('B-OUTGUARD-8: what it said is recorded with the reply, so no other worker asks it again', async () => {
    let asked = 0
    const counts = guard(() => {
      asked += 1
      return { replace: 'No.' }
    })
    const store = storages.memory()
    const first = stage([SECRET], [counts], { store })
    const { sessionId } = await first.harness.run('What is it?')
    await first.harness.close()
    const second = stage([], [counts], { store })
    expect(await second.harness.session(sessionId).run()).toMatchObject({ status: 'completed', text: 'No.' })
    expect(asked).toBe(1)
  })
})
