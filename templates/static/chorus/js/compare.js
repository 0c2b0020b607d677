// Takes of a part side by side: one is heard at a time, and changing over goes on at the same place of the sentence.
import { clock, enhance } from "./dom.js";
import { playOnly } from "./sound.js";

enhance("[data-compare]", (sheet) => {
  const takes = [...sheet.querySelectorAll("[data-compare-take]")].map((box, place) => {
    const audio = box.querySelector("audio");
    const button = box.querySelector("[data-compare-play]");
    const letter = String.fromCharCode(65 + place);
    box.querySelector("[data-compare-key]").textContent = letter;
    const draw = () => {
      const length = audio.duration || 0;
      button.setAttribute("aria-pressed", String(!audio.paused));
      box.querySelector("progress").value = length ? audio.currentTime / length : 0;
      if (length) box.querySelector("[data-compare-time]").textContent = `${clock(audio.currentTime)} / ${clock(length)}`;
    };
    for (const name of ["play", "pause", "ended", "timeupdate", "loadedmetadata", "seeked"]) {
      audio.addEventListener(name, draw);
    }
    return { audio, button, letter, use: box.querySelector("[data-compare-use]") };
  });
  let last = null;

  const play = (take) => {
    const before = last;
    last = take;
    if (before === take && !take.audio.paused) {
      take.audio.pause();
      return;
    }
    if (before && before !== take && before.audio.duration && take.audio.duration) {
      // Takes differ in length: the same place is the same share.
      const share = before.audio.ended ? 0 : before.audio.currentTime / before.audio.duration;
      take.audio.currentTime = share * take.audio.duration;
    }
    playOnly(take.audio);
  };

  for (const take of takes) take.button.addEventListener("click", () => play(take));
  sheet.addEventListener("toggle", (event) => {
    if (event.newState !== "open") {
      for (const take of takes) take.audio.pause();
      return;
    }
    for (const take of takes) take.audio.preload = "auto";
    sheet.querySelector(".sheet-body").focus();
  });
  sheet.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const named = takes.find((take) => take.letter === event.key.toUpperCase());
    const onButton = event.target instanceof HTMLButtonElement;
    if (named) play(named);
    else if (event.key === " " && !onButton && last) play(last);
    else if (event.key === "ArrowLeft" && last) last.audio.currentTime = 0;
    else if (event.key === "Enter" && !onButton && last?.use) last.use.click();
    else return;
    event.preventDefault();
  });
});
