// The contract of the verbs, on a harness and on the client of a server over the same harness.
import { connect } from '../../src/client/index.ts'
import { describeSessions } from '../contract/sessions.ts'
import { make } from '../runtime/scene.ts'
import { served } from './served.ts'

describeSessions('a harness', async (script, options) => make(script, options), true)

describeSessions(
  'a client',
  async (script, options) => {
    const { server, tokens } = await served(script, { harness: options ?? {} })
    return connect({ url: server.url, token: tokens.own })
  },
  false,
)
