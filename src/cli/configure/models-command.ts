// `terret models`: the hosts that can be named; for one host, its models with their context size and price.
import type { CommandArgs } from '../args.ts'
import { oneLine } from '../../view/clean.ts'
import { EXIT, CliError } from '../exit.ts'
import { endpointsOf } from '../state/folder-agent.ts'
import { print, printJson, warn } from '../present/print.ts'
import { readSetupHere } from '../state/folder-setup.ts'

export async function modelsCommand(call: CommandArgs): Promise<number> {
  const setup = await readSetupHere()
  const own = await endpointsOf(setup.settings)
  const { endpoints, listModels } = await import('../../index.ts')
  const [host] = call.words
  if (host === undefined) {
    for (const each of Object.values({ ...endpoints, ...Object.fromEntries(own.map((one) => [one.name, one])) })) {
      const { name, protocol, keys } = each
      const key = keys.length === 0 ? 'none needed' : keys.some((one) => setup.env[one]) ? 'set' : 'missing'
      if (call.is('json')) printJson({ name, protocol, keys, key })
      else print(`${name.padEnd(12)}  ${protocol.padEnd(10)}  key ${key.padEnd(11)}  ${keys.join(' or ')}`.trimEnd())
    }
    return EXIT.ok
  }
  const { headers } = setup.settings
  const offer = await listModels(host, { endpoints: own, env: setup.env, ...(headers ? { headers } : {}) })
  if (offer.type === 'failure') throw new CliError(offer.class === 'auth' ? EXIT.config : EXIT.failed, offer.message)
  for (const { id, contextTokens, price, assumed } of offer.models) {
    if (call.is('json'))
      printJson({
        model: `${host}:${id}`,
        contextTokens: contextTokens ?? null,
        price,
        ...(assumed ? { assumed } : {}),
      })
    else print(modelLine(`${host}:${oneLine(id, 200)}`, contextTokens, price, assumed))
  }
  if (offer.models.length === 0 && !call.is('json')) warn(`${host} lists no models.`)
  return EXIT.ok
}

type ModelPrice = { readonly input: number; readonly output: number }

function modelLine(name: string, contextTokens: number | undefined, price: ModelPrice, assumed?: true): string {
  const size = contextTokens === undefined ? '?' : `${Math.round(contextTokens / 1_000)}k`
  const cost = `$${price.input} in, $${price.output} out a million`
  const guess = assumed ? ' (price unknown: counted as this)' : ''
  return `${name.padEnd(48)}  ${size.padStart(6)}  ${cost}${guess}`
}
