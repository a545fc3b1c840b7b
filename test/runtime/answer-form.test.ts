// Questions whose answers have a shape: the fields that `ask_user` names, and the `output` of a tool that the host answers.
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineTool, Harness, type Json, scripted, type Tool } from '../../src/index.ts'
import { askUserTool } from '../../src/tools/index.ts'
import { fieldsIn, whyFormRefused } from '../../src/view/form-fields.ts'

const FIELDS = [
  { name: 'size', type: 'choice', choices: ['S', 'M'] },
  { name: 'count', type: 'number', description: 'How many' },
  { name: 'gift', type: 'yes_no' },
  { name: 'note', type: 'text', optional: true },
]

async function asking(call: { readonly tool: string; readonly args: Json }, tool: Tool) {
  const harness = new Harness({ model: scripted([{ calls: [call] }, 'Ordered.']), tools: [tool] })
  onTestFinished(() => harness.close())
  const { sessionId, pending } = await harness.run('Order shirts.')
  const [{ callId } = { callId: '' }] = pending
  const session = harness.session(sessionId)
  return { session, say: (content: string, ok = true) => session.answer({ callId, content, ok }) }
}

describe('an answer with a shape', () => {
  it('B-ERROR2-7: fields of ask_user are checked: what does not fit is refused field by field, and the question stays open', async () => {
    const { session, say } = await asking(
      { tool: 'ask_user', args: { question: 'Which?', fields: FIELDS } },
      askUserTool(),
    )
    await expect(say('two')).rejects.toThrow(/one JSON object: size \(S \| M\); count \(number\): How many; gift/)
    const wrong = say(JSON.stringify({ size: 'XL', count: '2', colour: 'red' }))
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(wrong).rejects.toThrow(
      /- size must be one of: S, M\n- count must be a number\n- gift is missing\n- "colour" is not asked for/,
    )
    expect((await session.status()).pending).toHaveLength(1)
    await say(JSON.stringify({ size: 'M', count: 2, gift: false }))
    expect(await session.run()).toMatchObject({ status: 'completed', text: 'Ordered.' })
  })

  it('B-ERROR2-7: without fields any text answers, and a question that could not be answered is told as it is', async () => {
    const free = await asking({ tool: 'ask_user', args: { question: 'Which?', choices: ['S'] } }, askUserTool())
    await free.say('Neither.')
    expect(await free.session.run()).toMatchObject({ status: 'completed' })
    const gone = await asking({ tool: 'ask_user', args: { question: 'Which?', fields: FIELDS } }, askUserTool())
    await gone.say('Nobody is here.', false)
    expect(await gone.session.run()).toMatchObject({ status: 'completed' })
  })

  it.each([
    [[{ name: 'size', type: 'choice' }], /fields\.0\.choices.*at least one choice/],
    [[{ name: 'size', type: 'choice', choices: [] }], /fields\.0\.choices.*at least one choice/],
    [[FIELDS[1], { name: 'count', type: 'text' }], /fields\.1\.name.*own name/],
  ])('B-ERROR2-10: fields that no answer fits are told to the model, and are not asked: %j', async (fields, said) => {
    const args = { question: 'Which?', fields } as Json
    const harness = new Harness({
      model: scripted([{ calls: [{ tool: 'ask_user', args }] }, 'Sorry.']),
      tools: [askUserTool()],
    })
    onTestFinished(() => harness.close())
    const { sessionId, status } = await harness.run('Order shirts.')
    expect(status).toBe('completed')
    const { events } = await harness.session(sessionId).events()
    const [result] = events.filter((event) => event.type === 'agent.tool_result')
    expect(result).toMatchObject({ status: 'error', failure: { kind: 'InvalidInput' } })
    expect(JSON.stringify(result)).toMatch(said)
  })

  it('B-ERROR2-10: a question of an earlier version with such fields can be answered', () => {
    const old = fieldsIn({
      fields: [
        { name: 'a', type: 'choice' },
        { name: 'a', type: 'number' },
      ],
    })
    expect(old).toMatchObject([{ name: 'a', type: 'text' }])
    expect(whyFormRefused(old, '{"a":"x"}')).toBeNull()
    const named = fieldsIn({ fields: [{ name: 'constructor', type: 'text', optional: true }] })
    expect(whyFormRefused(named, '{}')).toBeNull()
  })

  it('B-ERROR2-10: a number without end is no number', async () => {
    const fields = [{ name: 'n', type: 'number' }]
    const { say } = await asking({ tool: 'ask_user', args: { question: 'Which?', fields } }, askUserTool())
    for (const content of ['{"n":1e999}', '{"n":-1e999}'])
      await expect(say(content)).rejects.toThrow('n must be a number')
  })

  it('B-ERROR2-8: an answer to a tool of the host must fit the schema of its results', async () => {
    const weigh = defineTool({
      name: 'weigh',
      description: 'Weighs it, by hand.',
      input: z.object({}),
      output: z.object({ grams: z.number() }),
    })
    const { session, say } = await asking({ tool: 'weigh', args: {} }, weigh)
    await expect(say('heavy')).rejects.toThrow(/does not fit what was asked/)
    await expect(say('{"grams":"1"}')).rejects.toThrow(/- grams: /)
    await say('{"grams":1}')
    expect(await session.run()).toMatchObject({ status: 'completed' })
  })
})
