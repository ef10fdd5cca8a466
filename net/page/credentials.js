// credentials.js — a key becomes a browser token of an hour. sessionStorage keeps the token; nothing
// keeps the key.
const place = "weir.token"; // {token, expires_at}
const user_place = "weir.user"; // tokens of the same user see the same jobs
const life_s = 3600;

/** The token, or null where there is none or its hour is over. */
export function token() {
  const kept = JSON.parse(sessionStorage.getItem(place) ?? "null");
  return kept && kept.expires_at * 1000 > Date.now() ? kept.token : null;
}

export function forget_token() {
  sessionStorage.removeItem(place);
}

/** The options of fetch() for a request to the server: the token, if there is one. */
export function authorization() {
  const now = token();
  return now ? { headers: { authorization: `Bearer ${now}` } } : {};
}

/** Asks the server for a token. Throws an Error in words for people. */
export async function swap(key) {
  const answer = await fetch("v1/stream/tokens", {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ ttl_s: life_s, sub: user(), origin: location.origin }),
  });
  if (answer.status === 401) throw new Error("The server does not accept this key.");
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error.message);
  sessionStorage.setItem(place, JSON.stringify(body));
}

function user() {
  const kept = sessionStorage.getItem(user_place) ?? random_name();
  sessionStorage.setItem(user_place, kept);
  return kept;
}

/** crypto.randomUUID is missing on a page that came over plain HTTP from another machine. */
function random_name() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16)).join("-");
}
