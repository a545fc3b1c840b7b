// The page as the server draws it: with all that was said before, so a reload shows it at once.
import { cookies } from 'next/headers'
import { historyOf } from '../lib/harness'
import { Chat } from './chat'

export default async function Page({ searchParams }: { readonly searchParams: Promise<{ chat?: string | string[] }> }) {
  const { chat } = await searchParams
  const visitor = (await cookies()).get('visitor')?.value ?? ''
  const id = typeof chat === 'string' ? chat : ''
  return <Chat id={id} before={await historyOf(id, visitor)} />
}
