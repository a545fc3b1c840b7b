// A hook that wants more than the answer it sees.
import { describe, expect, it } from 'vitest'
import { Harness, type Hook, scripted } from '../../src/index.ts'
import { strictly } from './hooks-stage.ts'

const more: Hook = {
  type: 'continue_turn',
  run: ({ text }) => (text.includes('sources') ? undefined : { continue: 'Name your sources.' }),
}

describe('continue_turn', () => {
  it('B-HOOK-47: a reply without calls is not the end if a hook wants more: the model is told, and asked again (TA-6)', async () => {
    const asked: string[] = []
    const model = scripted((request, n) => {
      asked.push(JSON.stringify(request.messages.at(-1)))
      return n === 0 ? 'It rains.' : 'It rains; sources: the window.'
    })
    const harness = new Harness({ model, hooks: [more] })
    const { status, text, usage } = await harness.run('Weather?')
    expect([status, text, usage.modelRequests]).toEqual(['completed', 'It rains; sources: the window.', 2])
    expect(asked[1]).toContain('Name your sources.')
    await harness.close()
  })

  it('B-HOOK-48: it is bounded by the limit on requests, and then the last reply is the answer', async () => {
    const harness = new Harness({ model: scripted(() => 'It rains.'), hooks: [more], limits: { modelRequests: 3 } })
    const { status, text, usage } = await harness.run('Weather?')
    expect([status, text, usage.modelRequests]).toEqual(['completed', 'It rains.', 3])
    await harness.close()
  })

  it('B-HOOK-49: a hook that throws keeps no answer back, and strictly it ends the run', async () => {
    const hooks: Hook[] = [
      {
        type: 'continue_turn',
        run: () => {
          throw new Error('no idea')
        },
      },
    ]
    const told: string[] = []
    const onError = (where: string): void => {
      told.push(where)
    }
    const easy = new Harness({ model: scripted(['It rains.']), hooks, onError })
    expect((await easy.run('Weather?')).status).toBe('completed')
    expect(told).toEqual(['hook continue_turn'])
    await easy.close()
    const strict = new Harness({ model: scripted(['It rains.']), hooks: hooks.map(strictly), onError })
    const { status, stopReason } = await strict.run('Weather?')
    expect([status, stopReason]).toEqual(['failed', 'hook_error'])
    await strict.close()
  })
})
