import { chat } from '../../../../lib/harness'

export const dynamic = 'force-dynamic'
export const runtime = 'nodejs'
export { chat as DELETE, chat as GET, chat as POST }
