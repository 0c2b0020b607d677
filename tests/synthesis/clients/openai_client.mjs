// What a program in Node does with OpenAI's own client: node openai_client.mjs FOLDER SCENARIO JSON
// FOLDER holds node_modules/openai; JSON is {baseURL, apiKey, maxRetries, timeout, body, file, …}. Prints one JSON object.
import { createReadStream, createWriteStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { pathToFileURL } from "node:url";

const [folder, scenario, given] = process.argv.slice(2);
const module = await import(pathToFileURL(`${folder}/node_modules/openai/index.mjs`));
const { OpenAI } = module;
const { baseURL, apiKey, maxRetries = 0, timeout, body, file, ...more } = JSON.parse(given);
const client = new OpenAI({ baseURL, apiKey, maxRetries, ...(timeout ? { timeout } : {}) });

const scenarios = {
  async speech() {
    const answer = await client.audio.speech.create(body);
    await writeFile(file, Buffer.from(await answer.arrayBuffer()));
    return { type: answer.headers.get("content-type"), requestId: answer.headers.get("x-request-id") };
  },

  async stream() {
    const answer = await client.audio.speech.create({ ...body, stream_format: "audio" });
    const out = createWriteStream(file);
    const arrived = [];
    for await (const piece of Readable.fromWeb(answer.body)) {
      arrived.push(performance.now());
      out.write(piece);
    }
    await new Promise((done) => out.end(done));
    return { pieces: arrived.length, apart: arrived.at(-1) - arrived[0] };
  },

  async sse() {
    const answer = await client.audio.speech.create({ ...body, stream_format: "sse" });
    const events = (await answer.text())
      .split("\n\n")
      .filter((block) => block.startsWith("data: "))
      .map((block) => JSON.parse(block.slice(6)));
    return { types: events.map((event) => event.type), usage: events.at(-1).usage };
  },

  async models() {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    return { ids, one: (await client.models.retrieve(ids[0])).object };
  },

  async voice() {
    const consent = await client.audio.voiceConsents.create({
      name: "Yes",
      language: "en-US",
      recording: createReadStream(more.consent),
    });
    const voice = await client.audio.voices.create({
      name: "Mine",
      audio_sample: createReadStream(more.sample),
      consent: consent.id,
    });
    const answer = await client.audio.speech.create({ ...body, voice: { id: voice.id } });
    const bytes = (await answer.arrayBuffer()).byteLength;
    const deleted = await client.audio.voices.delete(voice.id);
    return { consent: consent.object, voice: voice.object, bytes, deleted: deleted.deleted };
  },

  async abort() {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), more.after);
    await client.audio.speech.create(body, { signal: stop.signal });
    return {};
  },
};

try {
  console.log(JSON.stringify(await scenarios[scenario]()));
} catch (error) {
  const name = Object.keys(module).find((key) => module[key] === error.constructor) ?? error.constructor.name;
  const { status, code, param, type, requestID, message } = error;
  console.log(JSON.stringify({ error: name, status, code, param, type, requestID, message }));
}
