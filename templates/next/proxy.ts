// Gives a browser that comes without them the id of a new chat and a cookie that says it is the same browser next time.
import { type NextRequest, NextResponse } from 'next/server'

const ID = /^[0-9a-f-]{36}$/

export const config = { matcher: '/' }

export function proxy(request: NextRequest): NextResponse {
  const visitor = request.cookies.get('visitor')?.value ?? ''
  const chat = request.nextUrl.searchParams.get('chat') ?? ''
  if (ID.test(visitor) && ID.test(chat)) return NextResponse.next()
  const url = request.nextUrl.clone()
  if (!ID.test(chat)) url.search = `?chat=${crypto.randomUUID()}`
  const response = NextResponse.redirect(url)
  if (!ID.test(visitor)) response.cookies.set('visitor', crypto.randomUUID(), { httpOnly: true, sameSite: 'lax' })
  return response
}
